"""Where the sampler's addresses lie, what they and the threads are called; and what perf says of the same work."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from collectors.shared.symbols.jit import PERF_MAP
from hwprof.processes import perf_map_of
from tests.support.bounds import different_shares, standard_errors
from tests.support.reported import fields
from tests.support.requirements import require_tool
from tests.support.sampled_process import FREQUENCY_HZ, Start, Worker, starter, worker_process

pytestmark = pytest.mark.alone


@pytest.fixture
def worker() -> Iterator[Worker]:
    with worker_process() as made:
        yield made


@pytest.fixture
def start(worker: Worker, tmp_path: Path) -> Start:
    return starter(worker, tmp_path)


NAMES_DIFFER = 0.01
"""What of all samples may lie in functions that perf names otherwise: aliases."""


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


def test_shares_agree_with_perf_record_on_the_same_work(worker: Worker, start: Start, tmp_path: Path) -> None:
    """Both at once on one process that compresses, hashes and interprets; by file, and by function in
    files in which perf knows them."""
    perf = require_tool("perf")
    sampler = start(kernel=False)
    record = [perf, "record", "-q", "-e", "cpu-clock:u", "-F", str(FREQUENCY_HZ), "-p", str(worker.process.pid)]
    other = subprocess.Popen([*record, "-o", str(tmp_path / "perf.data")], stderr=subprocess.DEVNULL)
    worker.do(
        "globals().update(zlib=__import__('zlib'), sha=__import__('_sha3').sha3_256, data=bytes(range(256)) * 1600)"
    )
    wait_for_counters(other.pid)
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


def wait_for_counters(pid: int) -> None:
    """Until a process, a perf, has opened its events; it enables them a moment later."""
    deadline = time.monotonic() + 60
    while not any("perf_event" in link for link in open_files(pid)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.5)


def open_files(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(entry.readlink())


def stub(name: str | None) -> str | None:
    """Stubs of calls to libraries as one: perf names each after its target, we the section in which they are."""
    return ".plt" if name is not None and (name.endswith("@plt") or name.startswith(".plt")) else name


def files(mappings: pl.DataFrame, addresses: list[int]) -> Counter[str]:
    """How many of the addresses lie in each file."""
    rows = [(row["address"], row["address"] + row["size_bytes"], row["file"]) for row in mappings.iter_rows(named=True)]
    return Counter(
        next((file for begin, end, file in rows if begin <= address < end), "unknown") for address in addresses
    )
