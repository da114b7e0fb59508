"""Threads that do the same at the same time, each on a processor of its own, and how long that takes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

Loop = Callable[[int], None]
"""So many rounds of something."""

CPU: Final = Path("/sys/devices/system/cpu")

CALIBRATION_S: Final = 0.002
"""From which on a call tells how long a round takes."""

MOST_ROUNDS: Final = 1 << 40


def processors(threads: int, root: Path = CPU) -> list[int]:
    """Those that so many threads take, of which this process may use: a core each, as far as there are cores; the
    siblings of simultaneous multithreading come after all of these. Fewer where there are not so many."""
    allowed = sorted(os.sched_getaffinity(0))
    first: list[int] = []
    siblings: list[int] = []
    seen: set[str] = set()
    for cpu in allowed:
        core = _core(cpu, root)
        (siblings if core in seen else first).append(cpu)
        seen.add(core)
    return (first + siblings)[:threads]


def cores(root: Path = CPU) -> int:
    """How many cores this process may use."""
    return len({_core(cpu, root) for cpu in os.sched_getaffinity(0)})


def seconds_a_round(
    cpus: Sequence[int], make: Callable[[int], Sequence[Loop]], each_s: float, repetitions: int
) -> list[list[float]]:
    """Of each of the loops that ``make`` gives the repetitions: from the first thread's begin to the last one's end, a
    round. ``make`` has each thread's number, and runs on its processor: what it touches first is near. Raises what
    ``make`` raises."""
    work = _Work(len(cpus), make, each_s, repetitions)
    threads = [threading.Thread(target=work.run, args=(number, cpu)) for number, cpu in enumerate(cpus)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if work.failure is not None:
        raise work.failure
    return work.results()


class _Work:
    def __init__(self, threads: int, make: Callable[[int], Sequence[Loop]], each_s: float, repetitions: int) -> None:
        self._make, self._each_s, self._repetitions = make, each_s, repetitions
        self._barrier = threading.Barrier(threads)
        self._rounds: list[int] = []
        self._times: list[dict[int, tuple[float, float]]] = []
        self.failure: BaseException | None = None

    def run(self, number: int, cpu: int) -> None:
        with suppress(OSError):  # a processor that has gone meanwhile
            os.sched_setaffinity(0, {cpu})
        try:
            self._measure(number, self._make(number))
        except threading.BrokenBarrierError:
            return
        except BaseException as error:
            self.failure = self.failure or error
            self._barrier.abort()

    def _measure(self, number: int, loops: Sequence[Loop]) -> None:
        for place, loop in enumerate(loops):
            self._barrier.wait()
            if number == 0:
                self._rounds.append(_calibrated(loop, self._each_s))
                self._times += [{} for _ in range(self._repetitions)]
            self._barrier.wait()
            for repetition in range(self._repetitions):
                self._barrier.wait()
                begin = time.perf_counter()
                loop(self._rounds[place])
                self._times[place * self._repetitions + repetition][number] = begin, time.perf_counter()

    def results(self) -> list[list[float]]:
        found = []
        for place, rounds in enumerate(self._rounds):
            times = self._times[place * self._repetitions : (place + 1) * self._repetitions]
            found.append(
                [
                    (max(end for _, end in one.values()) - min(begin for begin, _ in one.values())) / rounds
                    for one in times
                ]
            )
        return found


def _calibrated(loop: Loop, wanted_s: float) -> int:
    """How many rounds take about so long."""
    rounds, took_s = 1, 0.0
    while rounds < MOST_ROUNDS:
        begin = time.perf_counter()
        loop(rounds)
        took_s = time.perf_counter() - begin
        if took_s >= CALIBRATION_S:
            break
        rounds *= 2 if took_s * 8 > CALIBRATION_S else 8
    return max(1, min(MOST_ROUNDS, round(rounds * wanted_s / took_s))) if took_s else rounds


def _core(cpu: int, root: Path) -> str:
    """What its siblings have in common with it; its own number where the kernel does not tell."""
    for name in ("core_cpus_list", "thread_siblings_list"):
        with suppress(OSError):
            return (root / f"cpu{cpu}/topology/{name}").read_text(encoding="ascii").strip()
    return str(cpu)
