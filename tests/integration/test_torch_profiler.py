"""torch.profiler through the collector: operators with shapes, on the monotonic clock."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from collectors.torch_profiler.collector import TorchProfilerCollector
from collectors.torch_profiler.recording import RAW_FILE, Recording
from collectors.torch_profiler.tables import tables
from hwprof.collector.contract import PassContext
from hwprof.errors import HwprofError
from tests.support.requirements import require_module


def test_operators_lie_where_they_ran(tmp_path: Path) -> None:
    torch = require_module("torch")
    collector = TorchProfilerCollector()
    assert collector.availability().ok
    left, right = torch.rand(64, 32), torch.rand(32, 16)
    collector.start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {}))
    brackets = []
    for _ in range(20):
        begin = time.monotonic_ns()
        torch.mm(left, right)
        brackets.append((begin, time.monotonic_ns()))
        time.sleep(0.001)
    collected = collector.stop()
    assert (tmp_path / RAW_FILE).exists()
    products = collected.tables["spans"].filter(pl.col("path") == "aten::mm").sort("begin_ns")
    assert products["input_shapes"].unique().to_list() == ["64x32 32x16"]
    assert products["tid"].unique().to_list() == [os.getpid()]
    (clock,) = collected.clocks
    assert clock.error_ns < 100_000
    slack = clock.error_ns + 5_000
    assert products.height == len(brackets)
    for (low, high), begin, end in zip(brackets, products["begin_ns"], products["end_ns"], strict=True):
        assert low - slack <= begin <= end <= high + slack


def test_pieces_are_one_recording(tmp_path: Path) -> None:
    """Twelve matrix products, a piece each: each is there once, on one clock, and what is allocated goes on."""
    torch = require_module("torch")
    recording = Recording(tmp_path, piece_events=0)  # none waits for more
    recording.begin()
    brackets, kept = [], []
    for _ in range(12):
        begin_ns = time.monotonic_ns()
        kept.append(torch.mm(torch.rand(64, 32), torch.rand(32, 16)))
        brackets.append((begin_ns, time.monotonic_ns()))
        recording.go_on()
    recording.end()
    assert len(recording.files) == 13
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(file.name for file in recording.files)
    clock, found = tables(recording)
    products = found["spans"].filter(pl.col("path") == "aten::mm").sort("begin_ns")
    assert products.height == len(brackets)
    slack = clock.error_ns + 5_000
    for (low, high), begin_ns, end_ns in zip(brackets, products["begin_ns"], products["end_ns"], strict=True):
        assert low - slack <= begin_ns <= end_ns <= high + slack
    assert found["series"]["value"][-1] == sum(one.nbytes for one in kept)


def test_a_piece_is_as_long_as_the_last_ones_let_expect(tmp_path: Path) -> None:
    torch = require_module("torch")
    recording = Recording(tmp_path, piece_events=40_000)  # of 400,000 a second, as long as nothing is known: 0.1 s
    recording.begin()
    recording.go_on()
    assert not recording.files
    time.sleep(0.11)
    recording.go_on()
    assert len(recording.files) == 1
    torch.mm(torch.rand(4, 3), torch.rand(3, 5))
    time.sleep(0.11)
    recording.go_on()  # there were a few hundred a second
    assert len(recording.files) == 1
    recording.end()
    assert len(recording.files) == 2


@pytest.mark.parametrize("name", ["a\\b", "line\nfeed", "[x]*?", "\x1b[31m"])
def test_the_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    torch = require_module("torch")
    folder = tmp_path / name
    folder.mkdir()
    collector = TorchProfilerCollector()
    collector.start(PassContext("trace", os.getpid(), os.getpid(), folder, {}))
    torch.mm(torch.rand(4, 3), torch.rand(3, 5))
    assert not collector.stop().tables["spans"].is_empty()
    assert [file.name for file in folder.iterdir()] == [RAW_FILE]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_threads_name_may_be_any_text(tmp_path: Path) -> None:
    """torch writes it as it is into its file."""
    require_module("torch")
    code = (
        "import ctypes, os, pathlib, torch\n"
        "from collectors.torch_profiler.collector import TorchProfilerCollector\n"
        "from hwprof.collector.contract import PassContext\n"
        "ctypes.CDLL(None).prctl(15, bytes.fromhex('612262205c630a1bff642922'), 0, 0, 0)\n"
        "collector = TorchProfilerCollector()\n"
        f"collector.start(PassContext('trace', os.getpid(), os.getpid(), pathlib.Path({str(tmp_path)!r}), {{}}))\n"
        "torch.mm(torch.rand(4, 3), torch.rand(3, 5))\n"
        "print((collector.stop().tables['spans']['path'] == 'aten::mm').sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "1"
    written = json.loads(gzip.decompress((tmp_path / RAW_FILE).read_bytes()))["traceEvents"]
    names = {event["args"]["name"] for event in written if event["name"] == "thread_name"}
    assert any('(a"b \\c\n\x1b\ufffdd)")' in name for name in names)


def test_what_the_profiler_took_is_given_back(tmp_path: Path) -> None:
    """100,000 events: some 250 MB, that the C library kept."""
    require_module("torch")
    code = (
        "import os, pathlib, torch\n"
        "from collectors.torch_profiler.collector import TorchProfilerCollector\n"
        "from hwprof.collector.contract import PassContext\n"
        "resident = lambda: int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE') >> 20\n"
        "collector, one = TorchProfilerCollector(), torch.rand(1)\n"
        "one + one\n"
        "before = resident()\n"
        f"collector.start(PassContext('trace', os.getpid(), os.getpid(), pathlib.Path({str(tmp_path)!r}), {{}}))\n"
        "for _ in range(100_000): torch.neg(one, out=one)\n"
        "found = collector.stop().tables['spans']\n"
        "print(found.height, resident() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    operators, more_mb = map(int, done.stdout.split()[-2:])
    assert operators >= 100_000 and more_mb < 200


def test_recording_imports_no_compiler(tmp_path: Path) -> None:
    """torch.profiler's own class would: seconds, and hundreds of modules in the process that is measured."""
    require_module("torch")
    code = (
        "import os, pathlib, sys\n"
        "from collectors.torch_profiler.collector import TorchProfilerCollector\n"
        "from hwprof.collector.contract import PassContext\n"
        "collector = TorchProfilerCollector()\n"
        f"collector.start(PassContext('trace', os.getpid(), os.getpid(), pathlib.Path({str(tmp_path)!r}), {{}}))\n"
        "collector.stop()\n"
        "print(sorted({'torch._dynamo', 'torch._inductor', 'sympy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_memory_is_that_of_the_tensors(tmp_path: Path) -> None:
    """1 MB is kept, 2 MB are freed again, when and where they were; a thread of the model's own is not seen."""
    torch = require_module("torch")
    collector = TorchProfilerCollector()
    collector.start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {}))
    begin_ns = time.monotonic_ns()
    kept = torch.empty(1_000_000, dtype=torch.uint8)
    passing = torch.empty(2_000_000, dtype=torch.uint8)
    address = passing.data_ptr()
    del passing
    thread = threading.Thread(target=torch.empty, args=(3_000_000,), kwargs={"dtype": torch.uint8})
    thread.start()
    thread.join()
    end_ns = time.monotonic_ns()
    collected = collector.stop()
    table = collected.tables["allocations"]
    slack = collected.clocks[0].error_ns + 5_000
    inside = table.filter(pl.col("time_ns").is_between(begin_ns - slack, end_ns + slack), pl.col("bytes").abs() > 1e5)
    assert inside["bytes"].to_list() == [1_000_000, 2_000_000, -2_000_000]
    assert inside["address"].to_list() == [kept.data_ptr(), address, address]
    assert set(inside["tid"]) == {os.getpid()}
    allocated = collected.tables["series"].filter(pl.col("time_ns") <= end_ns + slack)["value"].to_list()
    assert max(allocated) >= 3_000_000 and 1_000_000 <= allocated[-1] < 2_000_000


def test_another_one_that_is_left_running_is_named(tmp_path: Path) -> None:
    """As a model that profiles itself has it."""
    torch = require_module("torch")
    collector = TorchProfilerCollector()
    collector.start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {}))
    own = torch.profiler.profile()
    own.start()
    try:
        torch.mm(torch.rand(4, 3), torch.rand(3, 5))
        with pytest.raises(HwprofError, match=r"of \d+ marks: another torch.profiler was at work"):
            collector.stop()
    finally:
        with suppress(Exception):
            own.stop()
