from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.memory import collector as memory
from collectors.memory.collector import MemoryLog, parse_faults, parse_pss_bytes, parse_resident_pages
from hwprof.run.schema import TABLES

PAGE = os.sysconf("SC_PAGE_SIZE")
ROLLUP = b"""55d0c0c0a000-7ffd8a9f6000 ---p 00000000 00:00 0    [rollup]
Rss:              123456 kB
Pss:               65432 kB
Pss_Dirty:         60000 kB
Pss_Anon:          50000 kB
Anonymous:         60000 kB
SwapPss:               1 kB
"""


class Process:
    """/proc/PID of a made-up process, with a clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_ns = 10_000_000_000
        self.set(pages=100, minor=1000, major=10)
        (folder / "smaps_rollup").write_bytes(ROLLUP)

    def set(self, pages: int, minor: int, major: int) -> None:
        (self.folder / "statm").write_text(f"9999 {pages} 5 1 0 7 0\n")
        (self.folder / "stat").write_text(
            f"42 (a (b) c) S 1 42 42 0 -1 4194304 {minor} 77 {major} 88 5 6 0 0 20 0 3 0\n"
        )

    def log(self) -> MemoryLog:
        return MemoryLog(self.folder, lambda: self.now_ns)


def test_series_of_a_process(tmp_path: Path) -> None:
    process = Process(tmp_path)
    log = process.log()
    assert log.sample()
    process.now_ns += 50_000_000
    process.set(pages=200, minor=1100, major=15)
    assert log.sample()
    log.close()
    series = log.series()
    assert series.schema == TABLES["series"]
    assert series.drop("pass").rows() == [
        (10_000_000_000, "memory/rss", "B", 100.0 * PAGE),
        (10_000_000_000, "memory/pss", "B", 75432.0 * 1024),
        (10_050_000_000, "memory/rss", "B", 200.0 * PAGE),
        (10_050_000_000, "memory/page-faults", "1/s", pytest.approx(105 / 0.05)),
    ]


def test_pss_is_asked_for_once_a_second(tmp_path: Path) -> None:
    process = Process(tmp_path)
    log = process.log()
    for _ in range(60):  # three seconds
        log.sample()
        process.now_ns += 50_000_000
    log.close()
    counted = dict(log.series().group_by("name").len().iter_rows())
    assert counted == {"memory/rss": 60, "memory/page-faults": 59, "memory/pss": 3}


def test_a_process_that_has_ended_ends_the_log(tmp_path: Path) -> None:
    process = Process(tmp_path)
    log = process.log()
    assert log.sample()
    process.set(pages=0, minor=1000, major=10)  # not waited for yet
    assert not log.sample()
    (tmp_path / "statm").write_text("")
    assert not log.sample()
    log.close()
    assert log.series().height == 2


def test_refused_pss_is_told_and_not_asked_for_again(tmp_path: Path) -> None:
    process = Process(tmp_path)
    (tmp_path / "smaps_rollup").unlink()
    log = process.log()
    assert log.sample()
    assert log.pss_refused == "No such file or directory"
    log.close()
    assert set(log.series()["name"]) == {"memory/rss"}


@given(st.text(st.characters(codec="ascii", exclude_characters="\0")), st.integers(0), st.integers(0))
def test_any_process_name(name: str, minor: int, major: int) -> None:
    stat = f"42 ({name}) R 1 1 1 0 -1 0 {minor} 5 {major} 6 1 1 0 0 20 0 1 0 0 0 0\n"
    assert parse_faults(stat.encode()) == minor + major


@pytest.mark.parametrize("text", [b"", b"nonsense", b"1"])
def test_other_text_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse_resident_pages(text)
    with pytest.raises(ValueError):
        parse_faults(text)


def test_pss_has_the_anonymous_memory_whole() -> None:
    """It would be divided by the number of workers that are copies of one process."""
    assert parse_pss_bytes(ROLLUP) == (65432 - 50000 + 60000) * 1024
    assert parse_pss_bytes(b"Pss:   65432 kB\nAnonymous:   60000 kB\n") == 65432 * 1024
    assert parse_pss_bytes(b"") is None


def test_availability() -> None:
    assert memory.MemoryCollector().availability().ok
    assert memory.MemoryCollector().stop().tables == {}
