"""What an instrumented pass comes to is compared with the measure pass's, to the bit, as a user sees it."""

from __future__ import annotations

import platform
import subprocess
import textwrap
from pathlib import Path

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from tests.support.command import hwprof
from tests.support.requirements import require_module

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")

MODEL = """
    import ctypes, os, sys, time, torch
    from hwprof.workload import checksum

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(16, 16)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return {"found": [self.inner(x), (self.extra(), float("nan"))], "name": "found"}

        def extra(self):
            return 0

    class Deceived(Model):
        def extra(self):  # one bit of one number, and only while it is instrumented
            return torch.tensor(1.0 + 2.0**-23 * ("collectors.instrumented.selftest" in sys.modules))

    class Unlike(Model):
        def extra(self):
            return os.urandom(8)

    class Counting(Model):  # another output each time, and the same in each process
        def extra(self):
            return torch.full((3,), float(self.calls)), torch.rand(3)

    class Rewritten(Model):  # what it calls is rewritten in place before each call
        def extra(self):
            if self.calls == 1:
                libc = ctypes.CDLL(None)
                libc.mmap.restype = ctypes.c_void_p
                self.at = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0))
                self.written = 0
            found = []
            for _ in range(3):
                self.written += 1
                ctypes.memmove(self.at, b"\\xb8" + self.written.to_bytes(4, "little") + b"\\xc3", 6)
                found.append(ctypes.PYFUNCTYPE(ctypes.c_int)(self.at)())
            assert found == [self.written - 2, self.written - 1, self.written], found
            return found

    def log(what):
        with open("seen.txt", "a") as file:
            print(os.getpid(), time.monotonic_ns(), what, file=file)

    class Seen(dict):
        def __del__(self):
            log("given back")

    def watched(add):
        def add_and_log(found, value):
            log("added up")
            add(found, value)
            log("added up")
        return add_and_log

    class Large(Model):  # more than anyone would copy
        def forward(self, x):
            return Seen(found=super().forward(x), large=torch.zeros(17 << 20))

    def large():
        checksum.Checksum.add = watched(checksum.Checksum.add)
        return Large(), torch.rand(1, 16)

    def deceived():
        return Deceived(), torch.rand(1, 16)

    def unlike():
        return Unlike(), torch.rand(1, 16)

    def counting():
        return Counting(), torch.rand(1, 16)

    def rewritten():
        return Rewritten(), torch.rand(1, 16)
"""


def collect(folder: Path, model: str, *options: str) -> subprocess.CompletedProcess[str]:
    require_module("frida")
    (folder / "made.py").write_text(textwrap.dedent(MODEL))
    begin = ["collect", "--model", f"made:{model}", "--iterations", "2", "--threads", "1", "--passes", "measure"]
    return hwprof(*begin, "--output", str(folder / "runs"), *options, cwd=folder, columns=200)


def passes(folder: Path) -> tuple[RunDirectory, dict[str, PassRecord]]:
    run = RunDirectory.latest(folder / "runs")
    return run, {record.name: record for record in run.manifest.passes}


def outputs(record: PassRecord) -> list[str | None]:
    return [iteration.outputs for iteration in record.iterations]


def notes(record: PassRecord) -> list[str]:
    return [note.text for one in record.collectors for note in one.notes if note.subject == "outputs"]


def test_a_difference_is_an_error_and_nothing_that_was_counted_is_shown(tmp_path: Path) -> None:
    done = collect(tmp_path, "deceived", "--counters", "auto")
    run, records = passes(tmp_path)
    if run.manifest.machine.has_core_pmu:
        pytest.skip("where the processor counts, nothing stands in for it")
    assert done.returncode == 1, "though nobody asked for the pass"
    own = records["instrumented"]
    assert own.status == "failed"
    assert [line for line in done.stderr.splitlines() if "outputs of iteration 1" in line], done.stderr
    assert "outputs of iteration 1" in (own.reason or "")
    assert "outputs of iteration 1" in done.stdout, "the report says it too"
    assert not run.read("counts").filter(pl.col("event").str.starts_with("instrumented.")).height
    assert "measure" in records
    assert records["measure-again"].status == "completed"
    assert outputs(records["measure-again"]) == outputs(records["measure"])[:2]


def test_a_model_of_which_no_two_runs_are_alike_is_excused(tmp_path: Path) -> None:
    done = collect(tmp_path, "unlike", "--counters", "instrumented")
    assert done.returncode == 0, done.stderr
    run, records = passes(tmp_path)
    assert records["instrumented"].status == "completed"
    assert len(notes(records["instrumented"])) == 1
    assert outputs(records["measure-again"])[1] != outputs(records["measure"])[1]
    assert run.read("counts").filter(pl.col("event").str.starts_with("instrumented.")).height


def test_iterations_are_compared_with_the_same_ones(tmp_path: Path) -> None:
    done = collect(tmp_path, "counting", "--counters", "instrumented")
    assert done.returncode == 0, done.stderr
    _, records = passes(tmp_path)
    assert set(records) == {"measure", "instrumented"}
    kept = outputs(records["measure"])
    assert kept[0] != kept[1]
    assert kept[:2] == outputs(records["instrumented"])
    assert kept[2:] == [None, None], "nobody compares them"
    assert notes(records["instrumented"]) == []


def test_one_iteration_is_done_again_to_compare_with(tmp_path: Path) -> None:
    done = collect(tmp_path, "counting", "--counters", "instrumented", "--warmup", "0", "--iterations", "1")
    assert done.returncode == 0, done.stderr
    _, records = passes(tmp_path)
    assert outputs(records["instrumented"]) == outputs(records["measure-again"])
    assert records["instrumented"].status == "completed"


def test_no_iterations_time_has_a_checksum_in_it_or_the_giving_back(tmp_path: Path) -> None:
    """Though every iteration after warm-up is timed, and only the first ones' outputs are added up."""
    options = ("--counters", "instrumented", "--warmup", "0", "--iterations", "4")
    done = collect(tmp_path, "large", *options)
    assert done.returncode == 0, done.stderr
    run, records = passes(tmp_path)
    measure = records["measure"]
    iterations = run.of_pass("spans", "measure").filter(kind="iteration")
    assert iterations.height == 4
    assert outputs(measure)[0] == outputs(records["instrumented"])[0] is not None
    seen = [line.split(maxsplit=2) for line in (tmp_path / "seen.txt").read_text().splitlines()]
    begin, end = measure.begin_ns, measure.end_ns
    assert begin is not None and end is not None
    own = [(what, int(at)) for pid, at, what in seen if int(pid) == measure.pid and begin < int(at) < end]
    number = sum(found is not None for found in outputs(measure))
    assert [what for what, _ in own].count("added up") == 2 * number < 8
    assert [what for what, _ in own].count("given back") == 4
    for begin, end in iterations.select("begin_ns", "end_ns").iter_rows():
        assert [what for what, at in own if begin <= at <= end] == []


def test_code_that_is_rewritten_in_place_ends_the_pass_with_the_reason(tmp_path: Path) -> None:
    """The model itself checks that what is executed is what it wrote."""
    done = collect(tmp_path, "rewritten", "--counters", "instrumented")
    assert done.returncode == 1
    _, records = passes(tmp_path)
    assert records["measure"].status == "completed"
    assert "was rewritten" in (records["instrumented"].reason or "")
