"""Why threads wait, on this machine's kernel: a program whose threads each wait for one thing only."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import textwrap

import polars as pl
import pytest

from collectors.sampler.collector import SamplerCollector
from hwprof.collector.contract import PassContext
from tests.support.reported import fields
from tests.support.requirements import missing

pytestmark = pytest.mark.alone

ROUNDS = 20

WORK = """
    import ctypes, json, os, sys, threading, time

    libc = ctypes.CDLL(None)
    mutex, condition_mutex, condition = (ctypes.create_string_buffer(64) for _ in range(3))
    semaphore = ctypes.create_string_buffer(64)
    libc.sem_init(semaphore, 0, 0)
    reading, writing = os.pipe()
    python_lock = threading.Lock()

    def lock():
        libc.pthread_mutex_lock(mutex)
        libc.pthread_mutex_unlock(mutex)
        libc.sem_wait(turn)

    def of_condition():
        libc.pthread_mutex_lock(condition_mutex)
        libc.pthread_cond_wait(condition, condition_mutex)
        libc.pthread_mutex_unlock(condition_mutex)

    def of_python_lock():
        with python_lock:
            pass
        libc.sem_wait(python_turn)

    turn, python_turn = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    libc.sem_init(turn, 0, 0)
    libc.sem_init(python_turn, 0, 0)
    KINDS = {
        "lock": lock,
        "condition": of_condition,
        "semaphore": lambda: libc.sem_wait(semaphore),
        "I/O": lambda: os.read(reading, 1),
        "sleep": lambda: libc.usleep(3000),
        "Python's lock": of_python_lock,
    }
    told = {}

    def rounds(kind):
        told[kind] = threading.get_native_id()
        for _ in range(ROUNDS):
            KINDS[kind]()

    def waits(kind):
        try:
            return kind in told and ") S " in open(f"/proc/self/task/{told[kind]}/stat").read()
        except OSError:
            return True  # it has done all its rounds

    def settle():
        # until everybody waits, however busy the machine is: a round that nobody waits for would be missing
        calm = 0
        while calm < 2:
            time.sleep(0.005)
            calm = calm + 1 if all(map(waits, KINDS)) else 0

    def spin():
        told["GIL"] = threading.get_native_id()
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            sum(range(1000))

    threads = [threading.Thread(target=rounds, args=(kind,), daemon=True) for kind in KINDS]
    spinning = [threading.Thread(target=spin) for _ in range(2)]
    print("ready", flush=True)
    sys.stdin.readline()
    libc.pthread_mutex_lock(mutex)
    python_lock.acquire()
    for thread in threads:
        thread.start()
    for _ in range(ROUNDS):
        settle()
        libc.pthread_mutex_unlock(mutex)
        python_lock.release()
        libc.sem_post(semaphore)
        libc.pthread_cond_broadcast(condition)
        os.write(writing, b"x")
        settle()
        libc.pthread_mutex_lock(mutex)
        python_lock.acquire()
        libc.sem_post(turn)
        libc.sem_post(python_turn)
    for thread in spinning:
        thread.start()
    for thread in spinning:
        thread.join()
    print(json.dumps(told), flush=True)
    sys.stdin.readline()
    os._exit(0)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, int], pl.DataFrame]:
    """Each thread's number by what it waits for, and how often and how long it waited for what (``kind``)."""
    sampler = SamplerCollector()
    available = sampler.availability()
    if not available.ok:
        missing(f"perf events ({available.reason})")
    code = textwrap.dedent(WORK).replace("ROUNDS", str(ROUNDS))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdout.readline()
        sampler.start(PassContext("trace", worker.pid, worker.pid, tmp_path_factory.mktemp("reasons"), {}))
        sampler.work_begins()
        worker.stdin.write("\n")
        worker.stdin.flush()
        while not select.select([worker.stdout], [], [], 0.05)[0]:
            sampler.step()  # its rings are emptied, as in a run: a busy machine takes long, and they would be full
        numbers: dict[str, int] = json.loads(worker.stdout.readline())
        sampler.work_ends()
        worker.stdin.write("\n")
    found = sampler.stop()
    if not fields(found.detail)["reasons"]:
        missing("samples of the kernel, by which it is told why threads wait")
    waits = found.tables["switches"].filter(~pl.col("preempted")).drop_nulls(["in_ns", "out_cpu"])  # those it saw begin
    times = waits.group_by("tid", "reason", "function").agg(
        times=pl.len(), ns=(pl.col("in_ns") - pl.col("out_ns")).sum()
    )
    return numbers, times


def total(rows: pl.DataFrame, column: str) -> int:
    return int(rows[column].sum())


@pytest.mark.parametrize("kind", ["lock", "condition", "semaphore", "I/O", "sleep"])
def test_a_thread_waits_for_what_it_waits_for(told: tuple[dict[str, int], pl.DataFrame], kind: str) -> None:
    """Beside that, its interpreter's lock, and where it stands aside for the next round."""
    numbers, times = told
    beside = {"GIL", "semaphore"} if kind == "lock" else {"GIL"}
    mine = times.filter(pl.col("tid") == numbers[kind])
    assert total(mine.filter(pl.col("reason") == kind), "times") >= 0.8 * ROUNDS, mine
    others = mine.filter(~pl.col("reason").is_in([kind, *beside]) | pl.col("reason").is_null())
    assert total(others, "ns") < 0.1 * total(mine, "ns"), mine


def test_threads_of_python_wait_for_its_locks(told: tuple[dict[str, int], pl.DataFrame]) -> None:
    numbers, times = told
    of_lock = times.filter((pl.col("tid") == numbers["Python's lock"]) & (pl.col("reason") == "lock"))
    assert total(of_lock, "times") >= 0.8 * ROUNDS
    assert of_lock["function"].str.starts_with("PyThread_acquire_lock").all()
    spinning = times.filter(pl.col("tid") == numbers["GIL"])
    assert total(spinning.filter(pl.col("reason") == "GIL"), "ns") > 0.9 * total(spinning, "ns")
    assert total(spinning, "ns") > 0.05e9, "two threads, one interpreter"


def test_reasons_are_names_of_their_functions(told: tuple[dict[str, int], pl.DataFrame]) -> None:
    _, times = told
    known = times.drop_nulls("reason")
    assert known["function"].null_count() == 0
    assert total(known, "ns") > 0.95 * total(times, "ns")
