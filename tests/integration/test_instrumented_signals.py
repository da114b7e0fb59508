"""Handlers of signals are not instrumented: how long they take is told, and nobody notices that they are watched."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.instrumented_process import child
from tests.support.requirements import require_tool

SOURCE = """
#include <pthread.h>
#include <signal.h>
#include <time.h>

long long took_ns;
int calls, others, wrong;
volatile int expected, done;
volatile double sink;

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void work(int number) {
  long long begin_ns = now_ns();
  double sum = 0;
  for (int i = 0; i < 20000000; i++) sum += i * 0.5;
  sink = sum;
  calls += number == SIGUSR1 || number == SIGUSR2;
  took_ns += now_ns() - begin_ns;
}

static void nested(int number) {
  raise(SIGUSR2);
  work(number);
}

static void other(int number, siginfo_t *info, void *context) {
  others += info->si_signo == number && context != 0;
}

int set(int number) { return signal(number, work) != SIG_ERR; }

int set_nested(int number) { return signal(number, nested) != SIG_ERR; }

int is_work(int number) {
  struct sigaction now;
  return sigaction(number, 0, &now) == 0 && now.sa_handler == work;
}

/* Another handler for one signal, and the one before again. */
int for_a_moment(int number) {
  struct sigaction mine = {.sa_sigaction = other, .sa_flags = SA_SIGINFO}, before, replaced;
  if (sigaction(number, &mine, &before) != 0 || before.sa_handler != work) return 0;
  raise(number);
  if (sigaction(number, &before, &replaced) != 0 || replaced.sa_sigaction != other) return 0;
  return (replaced.sa_flags & SA_SIGINFO) != 0;
}

int refuses(void) {
  struct sigaction mine = {.sa_handler = work};
  return sigaction(SIGKILL, &mine, 0) == -1 && sigaction(1000, &mine, 0) == -1;
}

static void one(int number) { wrong += expected != 1; calls++; }

static void two(int number) { wrong += expected != 2; calls++; }

static void *send(void *to) {
  while (!done) pthread_kill(*(pthread_t *)to, SIGUSR2);
  return 0;
}

/* Two handlers in turn, ignored between, while the signal comes all the time. */
int in_turn(int number, int times) {
  pthread_t self = pthread_self(), sender;
  signal(number, SIG_IGN);
  pthread_create(&sender, 0, send, &self);
  for (int i = 0; i < times; i++) {
    expected = 1 + i % 2;
    signal(number, i % 2 ? two : one);
    for (volatile int wait = 0; wait < 2000; wait++);
    signal(number, SIG_IGN);
  }
  done = 1;
  pthread_join(sender, 0);
  return wrong;
}

int ignored(int number) {
  if (signal(number, SIG_IGN) != work) return 0;
  raise(number);
  return signal(number, SIG_DFL) == SIG_IGN;
}
"""

BEGIN = """
    import signal, tempfile
    from hwprof.collector.contract import CountedSpan, PassContext
    from hwprof.run.process_events import UNCOUNTED_CPU_TIME
    from collectors.instrumented.collector import InstrumentedCollector
    library = ctypes.CDLL({library!r})
    took = ctypes.c_longlong.in_dll(library, "took_ns")
    calls, others = (ctypes.c_int.in_dll(library, name) for name in ("calls", "others"))
    library.set(signal.SIGUSR1)
    collector = InstrumentedCollector()
    collector.start(PassContext("instrumented", os.getpid(), os.getpid(), Path(tempfile.mkdtemp()), {{}}))
    edge, took_ns, answers = collector.full_reader(), [], []
    def span(function, *arguments):
        before = took.value
        answers.append(function(*arguments))
        edge()
        took_ns.append(took.value - before)
    edge()
"""

END = """
    collected = collector.stop()
    spans = [CountedSpan(number, 0, number, number + 1) for number in range(len(took_ns))]
    rows = collector.counts(spans)
    uncounted = rows.filter(rows["event"] == UNCOUNTED_CPU_TIME)["value"].to_list()
    end(
        took_ns=took_ns, uncounted_ns=uncounted, answers=answers, calls=calls.value, others=others.value,
        notes=[str(note) for note in collected.notes],
    )
"""

AROUND_NS = 200_000
"""What goes on around a handler that says what it took, and what clocks that are read one after the other differ by."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_tool("cc")
    folder = tmp_path_factory.mktemp("handlers")
    source, built = folder / "handlers.c", folder / "handlers.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-pthread", "-shared", "-fPIC", "-o", built, source], check=True)
    return built


def says(library: Path, script: str) -> dict[str, Any]:
    return child(BEGIN.format(library=str(library)) + script + END)


def test_the_time_of_handlers_is_uncounted_whenever_they_were_set(library: Path) -> None:
    said = says(
        library,
        """
    span(ctypes.CDLL(None)["raise"], signal.SIGUSR1)
    span(lambda: library.set(signal.SIGUSR2) and ctypes.CDLL(None)["raise"](signal.SIGUSR2))
    span(sum, range(1_000_000))
    """,
    )
    assert said["calls"] == 2
    for took_ns, uncounted_ns in zip(said["took_ns"], said["uncounted_ns"], strict=True):
        assert abs(uncounted_ns - took_ns) <= AROUND_NS
    assert said["took_ns"][0] > 1_000_000 and said["took_ns"][2] == 0
    assert [note for note in said["notes"] if "signal handlers worked for" in note]


def test_the_time_of_a_handler_within_a_handler_is_told_once(library: Path) -> None:
    said = says(
        library,
        """
    span(lambda: library.set(signal.SIGUSR2) and library.set_nested(signal.SIGUSR1))
    span(ctypes.CDLL(None)["raise"], signal.SIGUSR1)
    """,
    )
    assert said["calls"] == 2
    assert abs(said["uncounted_ns"][1] - said["took_ns"][1]) <= AROUND_NS


def test_nobody_notices(library: Path) -> None:
    said = says(
        library,
        """
    span(library.is_work, signal.SIGUSR1)
    span(library.for_a_moment, signal.SIGUSR1)
    span(library.is_work, signal.SIGUSR1)
    span(ctypes.CDLL(None)["raise"], signal.SIGUSR1)
    span(library.refuses)
    span(library.ignored, signal.SIGUSR1)
    span(library.is_work, signal.SIGUSR1)
    """,
    )
    assert said["answers"] == [1, 1, 1, 0, 1, 1, 0]
    assert (said["calls"], said["others"]) == (1, 1)


def test_of_several_handlers_the_one_that_is_set_is_called(library: Path) -> None:
    said = says(library, "    span(library.in_turn, signal.SIGUSR2, 20_000)\n")
    assert said["answers"] == [0] and said["calls"] > 0


def test_handlers_of_pythons_are_called(library: Path) -> None:
    said = says(
        library,
        """
    seen = []
    signal.signal(signal.SIGUSR2, lambda number, frame: seen.append(number))
    span(lambda: signal.raise_signal(signal.SIGUSR2) or len(seen))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    while len(seen) < 2:
        pass
    span(lambda: seen == [signal.SIGUSR2, signal.SIGALRM])
    """,
    )
    assert said["answers"] == [1, True]
    assert max(said["uncounted_ns"]) < AROUND_NS
