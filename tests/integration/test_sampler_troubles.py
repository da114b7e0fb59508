"""The sampler where rings overflow, threads and processes come and go, and something is not to be had."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from hwprof.errors import HwprofError
from tests.support.bounds import disturbance
from tests.support.reported import fields, texts
from tests.support.sampled_process import FREQUENCY_HZ, Start, Worker, of, starter, worker_process

pytestmark = pytest.mark.alone


@pytest.fixture
def worker() -> Iterator[Worker]:
    with worker_process() as made:
        yield made


@pytest.fixture
def start(worker: Worker, tmp_path: Path) -> Start:
    return starter(worker, tmp_path)


def test_many_threads_that_are_born_and_die_are_all_told_and_given_back(worker: Worker, start: Start) -> None:
    """More of them than descriptors would last for if those of the dead were kept."""
    sampler = start()
    sampler.work_begins()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with disturbance() as of_sampler:
        told = worker.do("[thread(0.02).join() for _ in range(60)]")
    sampler.step()
    after = len(list(Path("/proc/self/fd").iterdir()))
    sampler.work_ends()
    found = sampler.stop()
    sampled = found.tables["samples"]["tid"].n_unique()
    assert len(told) >= 55  # numbers of dead threads may be given again
    # each lives for 20 ms: when the sampler has no processor for so long, one may pass by unseen
    unseen = (of_sampler.waited_s + of_sampler.stolen_s) / 0.02
    assert fields(found.detail)["threads"] + fields(found.detail)["threads_missed"] >= len(told) - unseen
    assert sampled >= 0.9 * len(told) - unseen
    assert after <= before + 4


def test_a_ring_that_overflows_tells_how_much_was_lost(
    worker: Worker, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody drains while the ring fills several times over; then it is drained, and the kernel says what was lost."""
    monkeypatch.setattr("collectors.sampler.threads.ring_bytes", lambda needed: 8 * 4096)
    monkeypatch.setattr("collectors.sampler.recorder.Recorder._attend", lambda self, fd, hung_up: time.sleep(0.001))
    sampler = start(frequency=10_000)
    sampler.work_begins()
    worker.do("busy(0.3)")
    sampler.step()
    worker.do("busy(0.02)")
    sampler.work_ends()
    found = sampler.stop()
    kept = of(found, worker.process.pid).height
    assert fields(found.detail)["lost"] > 1000
    assert kept + fields(found.detail)["lost"] > 0.85 * 3200, "and records of switches"
    assert any("records were lost: rings of 32 KiB were full" in note for note in texts(found.notes))
    assert any("no sample stands for" in note for note in texts(found.notes))


def test_a_ring_is_drained_when_it_is_half_full_whoever_asks(
    worker: Worker, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collectors.sampler.threads.ring_bytes", lambda needed: 8 * 4096)
    sampler = start(frequency=10_000)
    sampler.work_begins()
    with disturbance() as of_sampler, disturbance(worker.process.pid) as disturbed:
        worker.do("busy(0.5)")
    sampler.work_ends()
    found = sampler.stop()
    # what comes while the sampler has no processor finds a full ring; and stolen time has no samples at all
    late = 10_000 * (of_sampler.waited_s + of_sampler.stolen_s)
    assert fields(found.detail)["record_bytes"] > 4 * 8 * 4096
    assert fields(found.detail)["lost"] <= late
    assert of(found, worker.process.pid).height > 4500 - late - 10_000 * disturbed.stolen_s


def test_samples_survive_a_worker_that_is_killed(worker: Worker, start: Start) -> None:
    sampler = start()
    sampler.work_begins()
    worker.do("busy(0.2)")
    worker.process.kill()
    worker.process.wait()
    found = sampler.stop()
    assert of(found, worker.process.pid).height > 0.15 * FREQUENCY_HZ


def test_a_process_that_executes_another_program_is_sampled_and_named_on(worker: Worker, start: Start) -> None:
    sampler = start()
    sampler.work_begins()
    worker.do("busy(0.1)")
    other = "sum(i * i for i in range(3_000_000)); print('{}', flush=True); input()"
    worker.do(f"__import__('os').execv(sys.executable, [sys.executable, '-S', '-c', {other!r}])")
    sampler.work_ends()
    found = sampler.stop()
    (begun,) = found.tables["mappings"].sort("time_ns").filter(pl.col("file").str.contains("/ld-"))["time_ns"][-1:]
    later = of(found, worker.process.pid).filter(pl.col("time_ns") > begun)
    assert later.height > 0.05 * FREQUENCY_HZ
    named = later.join(found.tables["kernels"], on="kernel").drop_nulls("name")
    assert named.height > 0.95 * later.height


def test_child_processes_are_told_and_not_sampled(worker: Worker, start: Start) -> None:
    sampler = start()
    sampler.work_begins()
    child = "__import__('subprocess').run([sys.executable, '-c', 'for _ in range(60): sum(range(200_000))'])"
    worker.do(f"(busy(0.1), {child})")
    sampler.work_ends()
    found = sampler.stop()
    assert found.tables["samples"]["pid"].unique().to_list() == [worker.process.pid]
    (note,) = [note for note in texts(found.notes) if note.startswith("child processes")]
    assert "which is not sampled: they have ended. Try: num_workers=0 (data loaders)" in note


@pytest.mark.alone
def test_threads_too_short_for_a_sample_are_told_with_the_remedy(worker: Worker, start: Start) -> None:
    sampler = start(frequency=50)
    sampler.work_begins()
    worker.do("[thread(0.015).join() for _ in range(30)]")  # long beside what it takes to notice a thread
    sampler.work_ends()
    notes = texts(sampler.stop().notes)
    assert any("threads did less than the 20 ms between samples. Try: a higher --frequency" in note for note in notes)


def test_without_memory_for_rings_the_reason_is_told(
    worker: Worker, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("collectors.sampler.threads.map_ring", no_memory)
    with pytest.raises(HwprofError, match=r"may not lock enough memory for ring buffers.*ulimit -l"):
        start()


def test_samples_survive_where_naming_fails(worker: Worker, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("collectors.sampler.naming.name", no_memory)
    sampler = start()
    sampler.work_begins()
    worker.do("busy(0.1)")
    sampler.work_ends()
    found = sampler.stop()
    assert found.tables["samples"].height > 0.05 * FREQUENCY_HZ
    assert fields(found.detail)["named"] == 0 and fields(found.detail)["unknown"] == found.tables["samples"].height
    assert "names of samples not available: MemoryError" in texts(found.notes)


def test_a_process_that_has_ended_cannot_be_sampled(worker: Worker, start: Start) -> None:
    sampler = start()
    worker.end()
    with pytest.raises(HwprofError, match="cannot sample the main thread"):
        sampler.work_begins()
