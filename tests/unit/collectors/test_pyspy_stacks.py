"""py-spy's own file: frames with their begins and ends, whatever stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from collectors.pyspy.stacks import Frame, read
from hwprof.errors import HwprofError

MAIN = "thread (77)"


def event(phase: str, name: str, at_us: int, tid: int = 1, file: str = "a.py", line: int = 3) -> dict[str, Any]:
    return {
        "args": {"filename": file, "line": line}, "cat": "py-spy", "name": name, "ph": phase, "pid": 5, "tid": tid,
        "ts": at_us,
    }  # fmt: skip


def frames(tmp_path: Path, *events: dict[str, Any]) -> list[Frame]:
    file = tmp_path / "trace.json"
    file.write_bytes(msgspec.json.encode(events))
    return read(file)


def test_frames_are_nested_as_they_begin(tmp_path: Path) -> None:
    found = frames(
        tmp_path,
        event("B", MAIN, 10), event("B", "outer", 10), event("B", "inner", 10, line=7),
        event("E", "inner", 20, line=7), event("B", "inner", 20, line=8),
        event("E", "inner", 40, line=8), event("E", "outer", 40), event("E", MAIN, 40),
    )  # fmt: skip
    assert found == [
        Frame(77, 1, "inner", "a.py", 7, 10_000, 20_000),
        Frame(77, 1, "inner", "a.py", 8, 20_000, 40_000),
        Frame(77, 0, "outer", "a.py", 3, 10_000, 40_000),
    ]


def test_threads_have_their_own_stacks_and_the_kernels_numbers(tmp_path: Path) -> None:
    found = frames(
        tmp_path,
        event("B", MAIN, 10, tid=1), event("B", "f", 10, tid=1),
        event("B", "thread (78): Thread-1 (work)", 15, tid=2), event("B", "g", 15, tid=2),
        event("E", "f", 20, tid=1), event("E", "g", 30, tid=2),
    )  # fmt: skip
    assert [(frame.tid, frame.function, frame.end_ns) for frame in found] == [(77, "f", 20_000), (78, "g", 30_000)]


@pytest.mark.parametrize(
    "events",
    [
        [],
        [event("E", "f", 10)],  # that nobody saw begin
        [event("B", MAIN, 10), event("B", "f", 10)],  # that does not end
        [event("B", "no thread", 10), event("B", "f", 10), event("E", "f", 20)],
        [event("B", MAIN, 10), event("E", MAIN, 20)],
        [event("M", MAIN, 10), event("B", "f", 10), event("E", "f", 20)],
    ],
)
def test_what_is_no_frame_of_a_thread_is_left_out(events: list[dict[str, Any]], tmp_path: Path) -> None:
    assert frames(tmp_path, *events) == []


@pytest.mark.parametrize("text", [b"", b"[{", b"{}", b'[{"name": 3}]', b"\xff\xfe"])
def test_a_file_that_is_not_whole_is_an_error(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(text)
    with pytest.raises(HwprofError, match="py-spy's file cannot be read"):
        read(tmp_path / "trace.json")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HwprofError, match="py-spy's file cannot be read"):
        read(tmp_path / "trace.json")
