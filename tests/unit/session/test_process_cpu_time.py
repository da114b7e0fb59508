"""The process's CPU time: what its threads did until now is in it, whatever processors they are on."""

from __future__ import annotations

import os
import time
from itertools import count

import polars as pl
import pytest

from hwprof.run.process_events import NEW_THREADS_CPU_TIME, PROCESS_CPU_ERROR, PROCESS_CPU_TIME, WHOLE_PROCESS_TID
from hwprof.session.pass_tables import process_cpu_time
from hwprof.session.process_cpu_time import Charged, ProcessCpuTime, Reading, charged
from hwprof.thread_clock import CLOCK_OF_A_THREAD
from tests.support.small_tables import spans

CALLING, WORKER, GONE = 11, 12, 13


class Kernel:
    """Charges a thread when its clock is read, and the caller when the process's is."""

    def __init__(self, work_ns: dict[int, int]) -> None:
        self.work_ns = work_ns
        self.charged_ns = dict.fromkeys(work_ns, 0)

    def of_thread(self, clock: int) -> int:
        assert clock & 7 == CLOCK_OF_A_THREAD
        tid = ~(clock >> 3)
        if tid not in self.work_ns:
            raise OSError("it has ended")
        self.charged_ns[tid] = self.work_ns[tid]
        return self.charged_ns[tid]

    def of_process(self) -> int:
        self.charged_ns[CALLING] = self.work_ns[CALLING]
        return sum(self.charged_ns.values())


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel({CALLING: 1000, WORKER: 900})
    monkeypatch.setattr(os, "listdir", lambda _: [str(tid) for tid in (CALLING, WORKER, GONE)])
    monkeypatch.setattr(time, "clock_gettime_ns", made.of_thread)
    monkeypatch.setattr(time, "process_time_ns", made.of_process)
    return made


def test_threads_at_work_on_other_processors_are_charged_before_the_process_is_asked(kernel: Kernel) -> None:
    cpu_time = ProcessCpuTime()
    assert cpu_time.now().process_ns == 1000, "nobody has looked for threads"
    cpu_time.look()
    assert cpu_time.now() == Reading(1900, {CALLING: 1000, WORKER: 900})
    kernel.work_ns[WORKER] += 50
    assert cpu_time.now().process_ns == 1950


def test_a_thread_has_its_own_clock_and_one_that_has_ended_none() -> None:
    """On this machine's kernel."""
    cpu_time = ProcessCpuTime()
    cpu_time.look()
    before, after = cpu_time.now(), cpu_time.now()
    assert os.getpid() in before.threads_ns
    assert before.threads_ns[os.getpid()] < after.threads_ns[os.getpid()] <= after.process_ns


def test_what_was_charged_lies_between_the_readings_inside_and_outside_of_the_edges() -> None:
    first = Reading(100, {1: 60, 2: 40}), Reading(130, {1: 70, 2: 60})
    last = Reading(1100, {1: 600, 2: 300}), Reading(1180, {1: 640, 2: 340, 3: 100})
    assert charged(first, last) == Charged(least_ns=970, most_ns=1080, new_threads_ns=1080 - 580 - 300)


def test_what_a_thread_took_that_ended_is_not_that_of_one_that_stayed() -> None:
    first = Reading(100, {1: 60, 2: 40}), Reading(100, {1: 60, 2: 40})
    last = Reading(500, {1: 360}), Reading(500, {1: 360})
    assert charged(first, last).new_threads_ns == 100


def test_an_iteration_has_the_middle_and_half_of_the_distance() -> None:
    numbers = count()
    table = spans([(next(numbers), None, index, "iteration", "", 1000 * index, 1000 * index + 700) for index in (3, 4)])
    found = process_cpu_time(table, {4: Charged(970, 1081, 200)})
    assert set(found["tid"]) == {WHOLE_PROCESS_TID} and set(found["enabled_ns"]) == {700}
    assert found.select("iteration", "span", "event", "value").rows() == [
        (4, 1, PROCESS_CPU_TIME, 1025),
        (4, 1, PROCESS_CPU_ERROR, 56),
        (4, 1, NEW_THREADS_CPU_TIME, 200),
    ]
    assert process_cpu_time(table, {}).is_empty()
    assert isinstance(found, pl.DataFrame)
