"""The PAPI collector's course over iterations: threads, sets and tables, with a PAPI that is made up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collectors.papi.collector import PapiCollector
from collectors.shared.counting.notes import SILENT_NS
from hwprof.collector.contract import CountedSpan, PassContext
from hwprof.errors import HwprofError
from tests.support.fake_papi import SOFTWARE, FakePapi
from tests.support.reported import texts

MAIN, WORKER, LATE = 100, 101, 102
CORE = ["PAPI_TOT_CYC", "PAPI_TOT_INS"]


class Machine:
    """The threads of a made-up process with the processor time of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cpu_ns = {MAIN: 1_000_000, WORKER: 1_000_000}
        real = os.listdir

        def listdir(path: str) -> list[str]:
            return [str(tid) for tid in self.cpu_ns] if path == "/proc/self/task" else real(path)

        monkeypatch.setattr("os.listdir", listdir)
        monkeypatch.setattr("collectors.shared.counting.collector.cpu_time_ns", lambda tid: self.cpu_ns.get(tid))
        monkeypatch.setattr("collectors.shared.counting.threads.thread_name", lambda tid: f"thread {tid}")
        monkeypatch.setattr("collectors.papi.threads.cpu_time_ns", lambda tid: self.cpu_ns.get(tid))
        monkeypatch.setattr("hwprof.hardware.perf_event.core_pmu_counts", lambda: True)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def started(papi: FakePapi, events: list[str] | None = None) -> PapiCollector:
    collector = PapiCollector(lambda: papi)
    collector.start(PassContext("measure", MAIN, MAIN, Path(), {"events": events}))
    return collector


def values(counts: pl.DataFrame, event: str) -> dict[tuple[int, int], int]:
    """By span and thread."""
    return {(row["span"], row["tid"]): row["value"] for row in counts.filter(event=event).to_dicts()}


def test_each_thread_has_its_counts_and_the_task_clock_is_the_time(machine: Machine) -> None:
    papi = FakePapi(CORE)
    collector = started(papi)
    read = collector.full_reader()
    collector.begin_iteration(0)
    read()
    papi.work(MAIN, PAPI_TOT_CYC=7, PAPI_TOT_INS=3, TASK_CLOCK=50)
    papi.work(WORKER, PAPI_TOT_CYC=70, PAPI_TOT_INS=30, TASK_CLOCK=500)
    read()
    counts = collector.counts([CountedSpan(0, 0, 0, 1)])
    assert values(counts, "PAPI_TOT_CYC") == {(0, MAIN): 7, (0, WORKER): 70}
    assert values(counts, "PAPI_TOT_INS") == {(0, MAIN): 3, (0, WORKER): 30}
    times = {(row["tid"], row["enabled_ns"], row["running_ns"]) for row in counts.to_dicts()}
    assert times == {(MAIN, 50, 50), (WORKER, 500, 500)}
    collected = collector.stop()
    assert collected.tables["threads"].select("tid", "name", "role").rows() == [
        (MAIN, "thread 100", "main"),
        (WORKER, "thread 101", "worker"),
    ]
    assert [event.name for event in collected.events] == [*CORE, *SOFTWARE]
    assert "cpi" in [metric.name for metric in collected.metrics]
    assert not papi.open


def test_sets_take_turns_on_every_thread(machine: Machine) -> None:
    papi = FakePapi([*CORE, "PAPI_LD_INS", "PAPI_HW_INT"], counters=3)
    collector = started(papi, [*CORE, "PAPI_LD_INS", "PAPI_HW_INT"])
    assert [names[2] for names in collector.event_sets()] == ["PAPI_LD_INS", "PAPI_HW_INT"]
    read, spans = collector.full_reader(), []
    for iteration in range(4):
        collector.begin_iteration(iteration % 2)
        read()
        papi.work(WORKER, PAPI_LD_INS=1, PAPI_HW_INT=10, TASK_CLOCK=1)
        read()
        spans.append(CountedSpan(iteration, iteration, 2 * iteration, 2 * iteration + 1))
    counts = collector.counts(spans).filter(tid=WORKER)
    assert values(counts, "PAPI_LD_INS") == {(0, WORKER): 1, (2, WORKER): 1}
    assert values(counts, "PAPI_HW_INT") == {(1, WORKER): 10, (3, WORKER): 10}


def test_threads_come_and_go(machine: Machine) -> None:
    papi = FakePapi(CORE)
    collector = started(papi)
    read = collector.full_reader()
    collector.begin_iteration(0)
    read()
    machine.cpu_ns[LATE] = 0  # too late for this iteration
    read()
    collector.begin_iteration(0)
    read()
    papi.work(LATE, PAPI_TOT_CYC=5, TASK_CLOCK=1)
    read()
    del machine.cpu_ns[WORKER]
    collector.begin_iteration(0)
    assert {papi.tids[number] for number in papi.running} == {MAIN, LATE}
    read()
    read()
    spans = [CountedSpan(number, number, 2 * number, 2 * number + 1) for number in range(3)]
    cycles = values(collector.counts(spans), "PAPI_TOT_CYC")
    assert {span: {tid for at, tid in cycles if at == span} for span in range(3)} == {
        0: {MAIN, WORKER},
        1: {MAIN, WORKER, LATE},
        2: {MAIN, LATE},
    }
    assert cycles[1, LATE] == 5
    assert set(collector.stop().tables["threads"]["tid"]) == {MAIN, WORKER, LATE}


def test_layers_read_the_threads_that_were_active_lately(machine: Machine) -> None:
    papi = FakePapi(CORE)
    collector = started(papi)
    full, leave = collector.full_reader(), collector.leave_reader()
    collector.begin_iteration(0)
    full()
    machine.cpu_ns[MAIN] += 1_000_000  # the worker slept
    full()
    collector.begin_iteration(0)
    leave()
    machine.cpu_ns[WORKER] += 1_000_000
    leave()
    collector.begin_iteration(0)
    leave()
    leave()
    cycles = values(collector.counts([CountedSpan(0, 0, 2, 3), CountedSpan(1, 1, 4, 5)]), "PAPI_TOT_CYC")
    assert {tid for span, tid in cycles if span == 0} == {MAIN}
    assert {tid for span, tid in cycles if span == 1} == {MAIN, WORKER}


def test_a_thread_that_ends_while_it_is_attached_to_is_no_note(machine: Machine) -> None:
    papi = FakePapi(CORE)
    papi.ended.add(WORKER)
    collected = started(papi).stop()
    assert collected.tables["threads"]["tid"].to_list() == [MAIN]
    assert not [note for note in texts(collected.notes) if "threads not counted" in note]


def test_a_thread_that_papi_refuses_is_noted(machine: Machine) -> None:
    papi = FakePapi(CORE)
    papi.open_set([*CORE], WORKER)
    papi.start(1)  # another event set counts that thread already
    collected = started(papi).stop()
    assert collected.tables["threads"]["tid"].to_list() == [MAIN]
    (note,) = [note for note in texts(collected.notes) if "threads not counted" in note]
    assert note.startswith("threads not counted (1): EventSet is currently counting")


def test_without_the_main_thread_there_is_no_counting(machine: Machine) -> None:
    papi = FakePapi(CORE)
    papi.open_set([*CORE], MAIN)
    papi.start(1)
    with pytest.raises(HwprofError, match="cannot count the main thread: EventSet is currently counting"):
        started(papi)
    assert list(papi.open) == [1]


def test_without_a_pmu_the_main_thread_is_counted_unattached(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwprof.hardware.perf_event.core_pmu_counts", lambda: False)
    papi = FakePapi(pmu=False)
    collector = started(papi)
    read = collector.full_reader()
    read()
    papi.work(None, PAGE_FAULTS=4, TASK_CLOCK=9)
    read()
    counts = collector.counts([CountedSpan(0, 0, 0, 1)])
    assert values(counts, "perf::PAGE-FAULTS") == {(0, MAIN): 4}
    notes = texts(collector.stop().notes)
    assert [note for note in notes if "main thread only" in note]
    assert not [note for note in notes if "threads not counted" in note]


def test_an_event_that_stays_0_is_told_and_one_that_happens_is_not(machine: Machine) -> None:
    events: list[Any] = ["PAPI_LD_INS", "PAPI_SR_INS"]
    papi = FakePapi(events)
    collector = started(papi, events)
    read = collector.full_reader()
    collector.begin_iteration(0)
    read()
    papi.work(MAIN, PAPI_SR_INS=1, TASK_CLOCK=SILENT_NS)
    read()
    collected = collector.stop()
    collector.counts([CountedSpan(0, 0, 0, 1), CountedSpan(1, 0, 0, 9)])
    assert [note for note in texts(collected.notes) if note.startswith("PAPI_LD_INS: counted 0 throughout")]
    assert "1 spans reach over the end of their iteration and were not counted" in texts(collected.notes)
