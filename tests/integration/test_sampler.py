"""The sampler on this machine's kernel: a process with busy threads, watched from beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from hwprof.run.schema import conform
from tests.support.bounds import RESTART_S, disturbance, processor_ns, with_missed
from tests.support.reported import fields, texts
from tests.support.requirements import missing
from tests.support.sampled_process import BUSY_S, FREQUENCY_HZ, RACE_S, Start, Worker, of, starter, worker_process

pytestmark = pytest.mark.alone


@pytest.fixture
def worker() -> Iterator[Worker]:
    with worker_process() as made:
        yield made


@pytest.fixture
def start(worker: Worker, tmp_path: Path) -> Start:
    return starter(worker, tmp_path)


def test_every_thread_is_sampled_in_proportion_to_its_processor_time(worker: Worker, start: Start) -> None:
    """The main thread, one that was there before, and one that is born in between. The sampler's clock runs on while
    the hypervisor takes the processor, the threads' clocks do not; a timer that is late for it is not made up for."""
    sampler = start()
    main = str(worker.process.pid)
    ran_ns = processor_ns(worker.process.pid)
    sampler.work_begins()
    begin_ns = time.monotonic_ns()
    with disturbance(worker.process.pid) as disturbed, disturbance() as of_sampler:
        told = worker.do(f"early.set(), waiting.join(), busy({BUSY_S}), thread({BUSY_S}).join()")
    end_ns = time.monotonic_ns()
    sampler.work_ends()
    elsewhere_s = (processor_ns(worker.process.pid) - ran_ns) / 1e9 - told[main][2]
    worker.end()
    found = sampler.stop()
    assert len(told) == 3
    born = found.tables["lifetimes"].drop_nulls("born_ns")["tid"].to_list()
    assert len(set(map(int, told)) & set(born)) == 1
    missed_ns = with_missed(found.tables["samples"], found.tables["switches"]).select("tid", "missed_ns")
    unheard_s = 0.0
    for tid, (began_ns, ended_ns, cpu_s, switches) in told.items():
        samples = of(found, tid)
        while_busy = samples.filter(pl.col("time_ns").is_between(began_ns, ended_ns))
        # how long the sampler needs to hear of a new one is another test's matter
        heard_s = int(samples["time_ns"][0] - began_ns) / 1e9 if int(tid) in born else 0
        unheard_s += heard_s
        restarts_s = RESTART_S * switches
        missed_s = int(missed_ns.filter(pl.col("tid") == int(tid))["missed_ns"].sum()) / 1e9
        assert missed_s + heard_s < cpu_s / 4, "then the bounds below would show little"
        unseen_s = heard_s if int(tid) in born else RACE_S + of_sampler.waited_s
        below_s = unseen_s + missed_s + restarts_s
        above_s = disturbed.stolen_s + restarts_s
        edges = 2  # the first and the last period are cut
        assert (cpu_s - below_s) * FREQUENCY_HZ - edges <= while_busy.height, tid
        assert while_busy.height <= (cpu_s + above_s) * FREQUENCY_HZ + edges, tid
        sampled_s = int(while_busy["cpu_ns"].sum()) / 1e9
        assert cpu_s - below_s - edges / FREQUENCY_HZ <= sampled_s <= cpu_s + above_s + edges / FREQUENCY_HZ
        others_s = max(elsewhere_s, 0) if tid == main else RACE_S
        assert samples.height - while_busy.height <= 3 + (others_s + above_s) * FREQUENCY_HZ, tid
    samples = found.tables["samples"]
    assert samples["time_ns"].is_between(begin_ns - RACE_S * 1e9, end_ns).all()
    assert set(map(str, samples["tid"].unique())) >= set(told)
    assert samples["pid"].unique().to_list() == [worker.process.pid]
    assert samples["domain"].is_in(["user", "kernel"]).all()
    assert (fields(found.detail)["lost"], fields(found.detail)["torn_bytes"], fields(found.detail)["throttled"]) == (
        0,
        0,
        0,
    )
    assert fields(found.detail)["samples"] == samples.height
    # a timer that is late, for the hypervisor had the processor, stands for one period only
    worked_s = sum(cpu_s for _, _, cpu_s, _ in told.values())
    restarts_s = RESTART_S * sum(switches for *_, switches in told.values())
    lost_s = unheard_s + int(missed_ns["missed_ns"].sum()) / 1e9 + restarts_s
    assert fields(found.detail)["represented_share"] > 0.97 - lost_s / worked_s
    for name, table in found.tables.items():
        conform(name, table)


def test_a_new_thread_is_sampled_milliseconds_after_its_birth(worker: Worker, start: Start) -> None:
    """The soonest of some: a sampler that has slept long finds its code in no cache, and may wait for a processor."""
    sampler = start()
    sampler.work_begins()
    told = worker.do("[thread(0.03).join() for _ in range(10)]")
    sampler.work_ends()
    found = sampler.stop()
    firsts = [(of(found, tid)["time_ns"].min(), began_ns) for tid, (began_ns, *_) in told.items()]
    soonest_ns = min(first_ns - began_ns for first_ns, began_ns in firsts if isinstance(first_ns, int))
    assert soonest_ns / 1e9 <= RACE_S + 1 / FREQUENCY_HZ


def test_nothing_is_sampled_before_the_work_begins_and_after_it_ends(worker: Worker, start: Start) -> None:
    sampler = start()
    worker.do("busy(0.1)")
    begin_ns = time.monotonic_ns()
    sampler.work_begins()
    with disturbance(worker.process.pid) as disturbed:
        worker.do("busy(0.1)")
    sampler.work_ends()
    end_ns = time.monotonic_ns()
    worker.do("busy(0.1)")
    samples = sampler.stop().tables["samples"]
    off_s = RACE_S + RESTART_S * disturbed.switches
    assert (0.1 - off_s) * FREQUENCY_HZ - 2 < samples.height < (0.1 + off_s + disturbed.stolen_s) * FREQUENCY_HZ + 2
    assert samples["time_ns"].is_between(begin_ns, end_ns).all()


def test_a_thread_that_sleeps_is_away_for_as_long_as_it_sleeps(worker: Worker, start: Start) -> None:
    sampler = start()
    sampler.work_begins()
    with disturbance(worker.process.pid) as disturbed:
        worker.do("time.sleep(0.2)")
    sampler.work_ends()
    found = sampler.stop()
    away = found.tables["switches"].filter(pl.col("tid") == worker.process.pid).drop_nulls(["out_ns", "in_ns"])
    longest = away.select((pl.col("in_ns") - pl.col("out_ns")).alias("ns"), "preempted").sort("ns").row(-1)
    late_s = RACE_S + disturbed.waited_s + disturbed.stolen_s
    # its alarm is set before it leaves the processor, which it may have to wait for in between
    early_s = 0.001 + disturbed.waited_s
    assert (0.2 - early_s) * 1e9 <= longest[0] < (0.2 + late_s) * 1e9
    assert longest[1] is False, "it wanted to sleep"
    assert of(found, worker.process.pid).height < 0.05 * FREQUENCY_HZ


def test_threads_that_are_created_and_go_to_sleep_are_away_to_the_end(worker: Worker, start: Start) -> None:
    """Many are asleep before any of their switches is recorded, and leave no record at all."""
    sampler = start()
    sampler.work_begins()
    for _ in range(20):
        worker.do("threading.Thread(target=threading.Event().wait, daemon=True).start()")
    worker.do("busy(0.05)")
    worker.do("time.sleep(0.05)")
    sampler.work_ends()
    tables = sampler.stop().tables
    born = tables["lifetimes"].drop_nulls("born_ns").select("tid")
    last = tables["switches"].group_by("tid", maintain_order=True).last().join(born, on="tid", how="right")
    assert last.height == 20
    assert last["in_ns"].to_list() == [None] * 20
    assert last["preempted"].to_list() == [False] * 20, last


def test_what_a_sample_costs_is_measured_and_told(worker: Worker, start: Start) -> None:
    """Measured on the thread that starts the sampler; told where it adds up to more than a hundredth."""
    sampler = start()
    sampler.work_begins()
    worker.do("busy(0.05)")
    sampler.work_ends()
    found = sampler.stop()
    cost_ns = fields(found.detail)["sample_cost_ns"]
    if cost_ns is None:
        missing("samples that cost more than the noise")
    assert 50 < cost_ns < 1_000_000
    assert fields(found.detail)["busy_threads"] == 1
    notes = [note for note in texts(found.notes) if note.startswith("sampling took about")]
    assert len(notes) == (cost_ns * FREQUENCY_HZ > 1e7)
