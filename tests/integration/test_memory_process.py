"""The memory collector on a real process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from collectors.memory.collector import PERIOD_S, MemoryCollector
from hwprof.collector.contract import Collected, PassContext
from tests.support.bounds import Disturbance, assert_every, disturbance

pytestmark = pytest.mark.alone

GROWTH_BYTES = 64 << 20
SCRIPT = f"""
import sys, time
time.sleep(0.3)
block = bytearray({GROWTH_BYTES})
for start in range(0, len(block), 4096):
    block[start] = 1
time.sleep(1.2)
"""


def watch(seconds_after_the_end: float) -> tuple[Collected, float, Disturbance]:
    """What the collector has to say of a growing process, its own CPU time in seconds, and what others did to it."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT])
    collector = MemoryCollector()
    before = time.thread_time() + time.process_time()
    with disturbance() as disturbed:
        collector.start(PassContext("measure", process.pid, process.pid, Path("/tmp"), {}))
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    process.wait()
    time.sleep(seconds_after_the_end)
    collected = collector.stop()
    return collected, time.thread_time() + time.process_time() - before, disturbed


def named(series: pl.DataFrame, name: str) -> pl.DataFrame:
    return series.filter(name=name)


def test_a_growing_process() -> None:
    collected, cpu_s, disturbed = watch(seconds_after_the_end=0.3)
    series = collected.tables["series"]
    rss, pss, faults = (named(series, f"memory/{name}") for name in ("rss", "pss", "page-faults"))
    assert rss["value"].max() - rss["value"].min() > 0.9 * GROWTH_BYTES  # type: ignore[operator]
    assert pss.height >= 2
    assert pss["value"].max() > 0.9 * GROWTH_BYTES  # type: ignore[operator]
    times_s = faults["time_ns"].diff().drop_nulls() / 1e9
    counted = (faults["value"][1:] * times_s).sum()
    assert counted > 0.9 * GROWTH_BYTES / os.sysconf("SC_PAGE_SIZE") or transparent_huge_pages()
    assert_every(rss["time_ns"].to_list(), PERIOD_S, disturbed)
    assert (rss["value"] > 0).all(), "a process that has ended is not sampled any more"
    assert cpu_s < 0.3
    assert collected.notes == []


def transparent_huge_pages() -> bool:
    file = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return file.exists() and "[always]" in file.read_text()


def test_a_process_that_is_gone_before_the_start() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, not waited for
    collector = MemoryCollector()
    collector.start(PassContext("measure", process.pid, process.pid, Path("/tmp"), {}))
    assert collector.stop().tables["series"].is_empty()
    process.wait()
