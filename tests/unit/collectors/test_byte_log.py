"""Bytes that lie partly in a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared import nameless_file
from collectors.shared.counting.byte_log import ByteLog


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 100), st.data())
def test_what_was_appended_is_read_wherever_it_lies(parts: list[bytes], in_memory: int, data: st.DataObject) -> None:
    log, whole = ByteLog(in_memory), b""
    for part in parts:
        log.append(part)
        whole += part
        assert len(log) == len(whole)
        begin = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(begin, len(whole)))
        assert log.read(begin, end) == whole[begin:end]
    assert log.read(0, len(whole)) == whole


@pytest.mark.parametrize("room", [0, 1 << 62])
def test_without_room_on_the_disk_all_stays_in_memory(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ByteLog(10)
    log.append(b"a" * 30)
    monkeypatch.setattr(nameless_file, "RESERVE_BYTES", room)
    log.append(b"b" * 30)
    log.append(b"c" * 30)
    assert log.read(0, 90) == b"a" * 30 + b"b" * 30 + b"c" * 30
    assert (len(log._memory) > 10) is bool(room)


def test_most_of_it_is_not_in_memory() -> None:
    log = ByteLog(1000)
    for _ in range(1000):
        log.append(bytes(100))
    assert len(log) == 100_000 and len(log._memory) <= 1000
