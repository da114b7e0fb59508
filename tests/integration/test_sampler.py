"""The sampler on this machine's kernel: a process with busy threads, watched from beside it."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collectors.sampler.collector import SamplerCollector
from collectors.shared.symbols.jit import PERF_MAP
from hwprof.collector.contract import Collected, PassContext
from hwprof.errors import HwprofError
from hwprof.processes import perf_map_of
from hwprof.run.schema import conform
from tests.support.bounds import RESTART_S, different_shares, disturbance, standard_errors
from tests.support.reported import fields, texts
from tests.support.requirements import missing, require_tool

pytestmark = pytest.mark.alone

FREQUENCY_HZ = 999
BUSY_S = 0.5
RACE_S = 0.005
"""What a thread may have done before its creation was seen by a sampler that did not have to wait for a processor."""

WORK = """
    import json, resource, sys, threading, time

    def busy(seconds):
        begin, before = time.monotonic_ns(), time.thread_time()
        while time.thread_time() < before + seconds:
            sum(range(2000))
        used = resource.getrusage(resource.RUSAGE_THREAD)
        switches = used.ru_nvcsw + used.ru_nivcsw
        told[threading.get_native_id()] = [begin, time.monotonic_ns(), time.thread_time() - before, switches]

    def thread(seconds):
        made = threading.Thread(target=busy, args=(seconds,))
        made.start()
        return made

    told = {}
    early = threading.Event()
    waiting = threading.Thread(target=lambda: (early.wait(), busy(SECONDS)), daemon=True)
    waiting.start()
    print("ready", flush=True)
    for line in sys.stdin:
        eval(line)
        print(json.dumps(told), flush=True)
"""

Told = dict[str, tuple[int, int, float, int]]


class Worker:
    """A process that does what it is told, line by line."""

    def __init__(self) -> None:
        code = textwrap.dedent(WORK).replace("SECONDS", str(BUSY_S))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._heard()

    def do(self, expression: str) -> Told:
        """What each thread told so far: begin and end (ns), processor time (s), how often it was switched out."""
        assert self.process.stdin is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        told: Told = json.loads(self._heard())
        return told

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.process.kill()
    made.process.wait()
    for pipe in (made.process.stdin, made.process.stdout):
        assert pipe is not None
        pipe.close()


NAMES_DIFFER = 0.01
"""What of all samples may lie in functions that perf names otherwise: aliases."""

Start = Callable[..., SamplerCollector]


@pytest.fixture
def start(worker: Worker, tmp_path: Path) -> Start:
    def started(**options: Any) -> SamplerCollector:
        sampler = SamplerCollector()
        available = sampler.availability()
        if not available.ok:
            missing(f"perf events ({available.reason})")
        pid = worker.process.pid
        sampler.start(PassContext("trace", pid, pid, tmp_path, {"frequency": FREQUENCY_HZ, **options}))
        return sampler

    return started


def of(collected: Collected, tid: int | str) -> pl.DataFrame:
    return collected.tables["samples"].filter(pl.col("tid") == int(tid))


def test_every_thread_is_sampled_in_proportion_to_its_processor_time(worker: Worker, start: Start) -> None:
    """The main thread, one that was there before, and one that is born in between. The sampler's clock runs on while
    the hypervisor takes the processor, the threads' clocks do not."""
    sampler = start()
    sampler.work_begins()
    begin_ns = time.monotonic_ns()
    with disturbance(worker.process.pid) as disturbed, disturbance() as of_sampler:
        told = worker.do(f"early.set(), waiting.join(), busy({BUSY_S}), thread({BUSY_S}).join()")
    end_ns = time.monotonic_ns()
    sampler.work_ends()
    worker.end()
    found = sampler.stop()
    assert len(told) == 3
    missed_s = RACE_S + of_sampler.waited_s
    for tid, (began_ns, ended_ns, cpu_s, switches) in told.items():
        samples = of(found, tid)
        restarts_s = RESTART_S * switches
        below_s, above_s = missed_s + restarts_s, disturbed.stolen_s + restarts_s
        edges = 2  # the first and the last period are cut
        assert (cpu_s - below_s) * FREQUENCY_HZ - edges <= samples.height, tid
        assert samples.height <= (cpu_s + RACE_S + above_s) * FREQUENCY_HZ + edges, tid
        sampled_s = int(samples["cpu_ns"].sum()) / 1e9
        assert cpu_s - below_s - edges / FREQUENCY_HZ <= sampled_s <= cpu_s + RACE_S + above_s + edges / FREQUENCY_HZ
        while_busy = samples.filter(pl.col("time_ns").is_between(began_ns, ended_ns))
        assert while_busy.height >= samples.height - 3 - RACE_S * FREQUENCY_HZ
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
    lost_s = disturbed.stolen_s + RESTART_S * sum(switches for *_, switches in told.values())
    assert fields(found.detail)["represented_share"] > 0.97 - lost_s / worked_s
    for name, table in found.tables.items():
        conform(name, table)


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


def test_user_samples_lie_in_mappings_that_are_known(worker: Worker, start: Start) -> None:
    """Those that were there, and a library that is loaded while samples are taken."""
    sampler = start()
    sampler.work_begins()
    worker.do("__import__('_decimal')")
    worker.do("busy(0.2)")
    sampler.work_ends()
    found = sampler.stop()
    mappings = found.tables["mappings"]
    (late,) = mappings.filter(pl.col("file").str.contains("_decimal")).iter_rows(named=True)
    assert late["time_ns"] > mappings["time_ns"].min()
    ranges = [(row["address"], row["address"] + row["size_bytes"]) for row in mappings.iter_rows(named=True)]
    user = found.tables["samples"].filter(pl.col("domain") == "user")
    assert user.height > 100
    inside = [any(begin <= address < end for begin, end in ranges) for address in user["address"]]
    assert all(inside)


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


def test_threads_too_short_for_a_sample_are_told_with_the_remedy(worker: Worker, start: Start) -> None:
    sampler = start(frequency=50)
    sampler.work_begins()
    worker.do("[thread(0.002).join() for _ in range(100)]")
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


def test_the_names_that_jit_compilers_leave_move_into_the_run(worker: Worker, start: Start, tmp_path: Path) -> None:
    sampler = start()
    left = perf_map_of(worker.process.pid)
    left.write_text("7f0000000000 40 jit_kernel.0\n")
    sampler.work_begins()
    sampler.work_ends()
    found = sampler.stop()
    assert not left.exists()
    assert (tmp_path / PERF_MAP).read_text() == "7f0000000000 40 jit_kernel.0\n"
    assert fields(found.detail)["jit_kernels"] == 1
    assert not (tmp_path / "records.bin").exists()


def test_threads_have_their_last_names_also_those_that_have_ended(worker: Worker, start: Start) -> None:
    sampler = start()
    sampler.work_begins()
    rename = "__import__('ctypes').CDLL(None).prctl(15, b'pool-1')"
    worker.do("globals().update(told={})")
    told = worker.do(
        f"(lambda one: (one.start(), one.join()))(threading.Thread(target=lambda: ({rename}, busy(0.05))))"
    )
    sampler.work_ends()
    threads = sampler.stop().tables["threads"]
    (tid,) = map(int, told)
    main = worker.process.pid
    assert threads.filter(pl.col("tid") == tid).select("pid", "name", "role").row(0) == (main, "pool-1", "worker")
    (role,) = threads.filter(pl.col("tid") == main)["role"]
    assert role == "main" and threads["tid"].is_unique().all()


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


def test_shares_agree_with_perf_record_on_the_same_work(worker: Worker, start: Start, tmp_path: Path) -> None:
    """Both at once on one process that compresses, hashes and interprets; by file, and by function in
    files in which perf knows them."""
    perf = require_tool("perf")
    sampler = start(kernel=False)
    record = [perf, "record", "-q", "-e", "cpu-clock:u", "-F", str(FREQUENCY_HZ), "-p", str(worker.process.pid)]
    other = subprocess.Popen([*record, "-o", str(tmp_path / "perf.data")], stderr=subprocess.DEVNULL)
    worker.do(
        "globals().update(zlib=__import__('zlib'), sha=__import__('_sha3').sha3_256, data=bytes(range(256)) * 400)"
    )
    time.sleep(1)  # until perf is there
    sampler.work_begins()
    worker.do("[(zlib.compress(data), sha(data).digest(), busy(0.005)) for _ in range(120)]")
    sampler.work_ends()
    other.send_signal(signal.SIGINT)
    other.wait()
    found = sampler.stop()
    script = [perf, "script", "-i", str(tmp_path / "perf.data"), "-F", "ip,sym,dso"]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    mappings = found.tables["mappings"]
    told = [line.split() for line in printed.splitlines()]  # address, function, (file)
    ours = files(mappings, found.tables["samples"]["address"].to_list())
    theirs = files(mappings, [int(words[0], 16) for words in told])
    assert ours.total() > 500
    beginning = 0.1 * ours.total()  # which perf's saw, too
    assert abs(theirs.total() - ours.total()) < beginning + standard_errors() * (theirs.total() + ours.total()) ** 0.5
    assert sum(count > 0.03 * ours.total() for count in ours.values()) >= 3
    assert not different_shares(ours, theirs, NAMES_DIFFER)
    named = found.tables["samples"].join(found.tables["kernels"], on="kernel", suffix="_kernel")
    unknown = {Path(words[-1].strip("()")).name for words in told if words[1] == "[unknown]"}
    known = named.filter(~pl.col("library").is_in(list(unknown)))
    functions = Counter((library, stub(name)) for library, name in known.select("library", "name").iter_rows())
    assert functions.total() > 50, "files in which perf knows no name are left out, and nothing is compared"
    pairs = [(Path(words[-1].strip("()")).name, stub(" ".join(words[1:-1]))) for words in told]
    assert not different_shares(functions, Counter(pair for pair in pairs if pair[0] not in unknown), NAMES_DIFFER)


def stub(name: str | None) -> str | None:
    """Stubs of calls to libraries as one: perf names each after its target, we the section in which they are."""
    return ".plt" if name is not None and (name.endswith("@plt") or name.startswith(".plt")) else name


def files(mappings: pl.DataFrame, addresses: list[int]) -> Counter[str]:
    """How many of the addresses lie in each file."""
    rows = [(row["address"], row["address"] + row["size_bytes"], row["file"]) for row in mappings.iter_rows(named=True)]
    return Counter(
        next((file for begin, end, file in rows if begin <= address < end), "unknown") for address in addresses
    )
