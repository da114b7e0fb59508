"""py-spy's own file: frames with their begins and ends, whatever stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.pyspy.stacks import LARGEST, LATEST_US, LEVELS, Frame, Stacks, read
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
    return read(file).frames


def read_json(folder: Path, events: Any) -> Stacks:
    """As Python writes it: with NaN, and halves of characters."""
    (folder / "trace.json").write_text(json.dumps(events))
    return read(folder / "trace.json")


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


@pytest.mark.parametrize("text", [b"", b"[{", b"{}", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_not_whole_is_an_error(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(text)
    with pytest.raises(HwprofError, match="py-spy's file cannot be read"):
        read(tmp_path / "trace.json")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HwprofError, match="py-spy's file cannot be read"):
        read(tmp_path / "trace.json")


NONE: list[Any] = [None, float("nan"), float("inf"), 1.5, "x", [], {}, -1, 2**63, 10**30]


@pytest.mark.parametrize("line", [*NONE, 4294966298, LARGEST + 1])
def test_a_line_that_is_none_is_unknown(line: Any, tmp_path: Path) -> None:
    events = [event("B", MAIN, 10), event("B", "f", 10, line=line), event("E", "f", 20), event("E", MAIN, 20)]
    found = read_json(tmp_path, events)
    assert found.frames == [Frame(77, 0, "f", "a.py", 0, 10_000, 20_000)]
    assert (found.lines_unknown, found.refused) == (1, 0)


NAMES: list[Any] = [None, 3, {}, "\ud800x", "x\udcff"]
WRONG: list[dict[str, Any]] = [
    *({"ts": value} for value in (*NONE, LATEST_US + 1, 31)),
    *({"name": value} for value in NAMES),
    *({"args": {"filename": value, "line": 1}} for value in [None, 3, "\udcff"]),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_with_a_frame_costs_this_one(wrong: dict[str, Any], tmp_path: Path) -> None:
    found = read_json(
        tmp_path,
        [
            event("B", MAIN, 10), event("B", "outer", 10), event("B", "f", 10) | wrong, event("B", "inner", 10),
            event("E", "inner", 20), event("E", "f", 30), event("E", "outer", 40), event("E", MAIN, 40),
        ],
    )  # fmt: skip
    assert [(frame.function, frame.depth) for frame in found.frames] == [("inner", 2), ("outer", 0)]
    assert [(thread.tid, thread.begin_ns, thread.end_ns) for thread in found.threads] == [(77, 10_000, 40_000)]
    assert found.refused == 1


@pytest.mark.parametrize("tid", [LARGEST + 1, 10**30, int("9" * 4000)])
def test_a_thread_that_is_none_costs_its_frames(tid: int, tmp_path: Path) -> None:
    found = read_json(
        tmp_path,
        [
            event("B", MAIN, 10), event("B", "f", 10), event("B", f"thread ({tid})", 10, tid=2),
            event("B", "g", 10, tid=2), event("E", "g", 20, tid=2), event("E", "f", 20),
        ],
    )  # fmt: skip
    assert [frame.function for frame in found.frames] == ["f"]
    assert found.refused == 1


def test_stacks_are_cut_where_they_are_too_deep(tmp_path: Path) -> None:
    depth = 200_000
    begins = [event("B", f"f{level}", 10) for level in range(depth)]
    ends = [event("E", "", 20) for _ in range(depth + 1)]
    (tmp_path / "trace.json").write_bytes(msgspec.json.encode([event("B", MAIN, 10), *begins, *ends]))
    found = read(tmp_path / "trace.json")
    assert sorted(frame.depth for frame in found.frames) == list(range(LEVELS))
    assert found.too_deep == depth - LEVELS


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["B", "E", MAIN, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
events_of_any_kind = st.fixed_dictionaries(
    {},
    optional={
        "name": anything | st.just(MAIN),
        "ph": st.sampled_from("BE") | anything,
        "ts": st.integers(-1, 100) | anything,
        "tid": st.integers(1, 2) | anything,
        "args": st.fixed_dictionaries({"filename": anything, "line": anything}) | anything,
    },
)


@given(st.lists(events_of_any_kind | anything, max_size=20))
def test_whatever_stands_in_it_frames_fit_the_table(tmp_path_factory: pytest.TempPathFactory, events: Any) -> None:
    found = read_json(tmp_path_factory.getbasetemp(), events)
    for frame in (*found.frames, *found.threads):
        assert 0 <= frame.tid <= LARGEST and 0 <= frame.line <= LARGEST
        assert 0 <= frame.begin_ns <= frame.end_ns <= 1000 * LATEST_US
        assert frame.function.encode() is not None and frame.file.encode() is not None
