"""What malloc says that it holds, against what was asked of it: glibc's own, and two that may stand in its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from collectors.allocator.collector import huge_pages
from tests.support.requirements import missing

MIB = 1 << 20

HOLDS = """
import ctypes, gc, json, sys
from pathlib import Path
from collectors.allocator.collector import AllocatorCollector
from hwprof.collector.contract import PassContext
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
collector = AllocatorCollector()
collector.start(PassContext("trace", 1, 1, Path("."), {}))
gc.collect()
gc.disable()  # what imports left is not freed meanwhile
if hasattr(libc, "mallctl"):  # jemalloc counts what its thread cache holds for later as allocated
    libc.mallctl(b"thread.tcache.flush", None, None, None, ctypes.c_size_t(0))
collector.iteration_edge()
held = [libc.malloc(size) for size in (64 << 20, *[1000] * 10_000)]
ctypes.memset(held[0], 1, 64 << 20)
collector.iteration_edge()
for address in held:
    libc.free(address)
collected = collector.stop()
series = collected.tables["series"].sort("time_ns")
print(json.dumps({"allocator": collected.detail.allocator, "settings": collected.detail.settings,
                  "values": {name: series.filter(name=name)["value"].to_list() for name in series["name"].unique()}}))
"""


def library(name: str) -> str:
    found = sorted(Path("/usr/lib").glob(f"*/lib{name}.so.*"))
    return str(found[0]) if found else missing(f"lib{name}: apt-get install it")


@pytest.mark.parametrize("preloaded", [None, "jemalloc", "tcmalloc_minimal"])
def test_it_holds_what_was_asked_of_it(preloaded: str | None) -> None:
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
    if preloaded is not None:
        environment["LD_PRELOAD"] = library(preloaded)
    done = subprocess.run([sys.executable, "-c", HOLDS], env=environment, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["allocator"] == (preloaded or "glibc").partition("_")[0]
    assert said["settings"]["MALLOC_ARENA_MAX"] == "2"
    _, before, during, after = said["values"]["allocator/in-use"]
    asked = 64 * MIB + 10_000_000
    assert asked <= during - before <= 1.1 * asked, "rounded up by less than a tenth"
    assert abs(after - before) < MIB
    assert all(value >= 0 for values in said["values"].values() for value in values)
    if preloaded is None:
        mapped = said["values"]["allocator/mapped"]
        assert mapped[2] - mapped[1] >= 64 * MIB > mapped[3] - mapped[1], "a large block is mapped, and unmapped"


def test_when_the_kernel_gives_huge_pages(tmp_path: Path) -> None:
    file = tmp_path / "enabled"
    assert huge_pages(file) is None
    file.write_text("always [madvise] never\n")
    assert huge_pages(file) == "madvise"
    file.write_bytes(b"\xff[")
    assert huge_pages(file) is None
