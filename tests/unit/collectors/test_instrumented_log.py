"""A log that goes on in a file: the same entries, wherever they lie."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.instrumented.log import Log, LogFile
from collectors.instrumented.memory import LOG_ENTRY, SharedMemory
from collectors.shared import nameless_file

ENOUGH = 4


class Memory:
    """As the C module fills it."""

    def __init__(self) -> None:
        self.shared = SharedMemory(mend_epilog=False, threads=1)
        self._ends = (ctypes.c_uint64 * 100).from_address(self.shared.control.log_ends)

    def edge(self, entries: list[int]) -> None:
        """Blocks that were executed once each since the edge before."""
        control = self.shared.control
        added = np.array([(0, block, 1) for block in entries], dtype=LOG_ENTRY)
        place = control.log + control.log_used * LOG_ENTRY.itemsize
        ctypes.memmove(place, added.ctypes.data, added.nbytes)
        control.log_used += len(entries)
        self._ends[control.edges] = control.log_given + control.log_used
        control.edges += 1


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


@given(st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=6), max_size=20))
def test_it_is_one_log_however_often_it_was_emptied(memory: Memory, intervals: list[list[int]]) -> None:
    control = memory.shared.control
    control.log_used = control.log_given = control.edges = 0
    file = LogFile(memory.shared, enough=ENOUGH)
    for blocks in intervals:
        memory.edge(blocks)
        file.empty_if_long()
        assert control.log_used < ENOUGH
    log = Log.of(memory.shared, file)
    file.close()
    for _ in range(2):
        assert log.entries["block"].tolist() == [block for blocks in intervals for block in blocks]
        log.give_back()
    assert np.diff(log.ends, prepend=0).tolist() == [len(blocks) for blocks in intervals]


def test_a_short_one_needs_no_file(memory: Memory, tmp_path: Path) -> None:
    control = memory.shared.control
    control.log_used = control.log_given = control.edges = 0
    file = LogFile(memory.shared, tmp_path / "not there", enough=ENOUGH)
    memory.edge([1, 2, 3])
    file.empty_if_long()
    assert Log.of(memory.shared, file).entries["block"].tolist() == [1, 2, 3]
    assert file.failure is None


def test_what_cannot_be_written_is_known_and_tried_once(memory: Memory, tmp_path: Path) -> None:
    control = memory.shared.control
    control.log_used = control.log_given = control.edges = 0
    file = LogFile(memory.shared, tmp_path / "not there", enough=ENOUGH)
    memory.edge([1, 2, 3, 4])
    file.empty_if_long()
    assert file.failure is not None and file.failure.errno == errno.ENOENT
    (tmp_path / "not there").mkdir()
    file.empty_if_long()
    assert control.log_used == 4 and list((tmp_path / "not there").iterdir()) == []


def test_room_is_left_to_what_was_measured_before(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which may not be written yet; and what the file took is free again."""
    file = LogFile(memory.shared, tmp_path, enough=ENOUGH)
    memory.edge([1, 2, 3, 4])
    file.empty_if_long()
    monkeypatch.setattr(nameless_file, "RESERVE_BYTES", 1 << 62)
    memory.edge([5, 6, 7, 8])
    file.empty_if_long()
    assert file.failure is not None and file.failure.errno == errno.ENOSPC
    assert file._file is not None and file._file._file.closed
