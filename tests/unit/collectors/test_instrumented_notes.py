"""What an instrumented pass says of itself: threads beside it, and names of code made at run time."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.instrumented import uninstrumented
from collectors.instrumented.notes import jit_notes, tile_notes
from collectors.instrumented.uninstrumented import ENDED, UninstrumentedThreads
from hwprof.run.notes import NoteKind

MAIN, ENGINE, OTHER, LATER = 1, 2, 3, 4


def test_only_what_threads_did_until_the_end_is_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making tables brings threads later. The first reading was copied while it was executed, and is not used."""
    times = iter(
        [
            (97, {MAIN: 50, ENGINE: 20}),
            (100, {MAIN: 60, ENGINE: 40}),
            (180, {MAIN: 90, ENGINE: 60, OTHER: 20}),
            (999, {MAIN: 90, ENGINE: 60, OTHER: 20, LATER: 800}),
        ]
    )
    monkeypatch.setattr(uninstrumented, "_times", lambda: next(times))
    monkeypatch.setattr(uninstrumented, "thread_name", lambda tid: {OTHER: "pool"}.get(tid))
    threads = UninstrumentedThreads([ENGINE])
    threads.end()
    assert threads.worked([MAIN]) == {f"pool ({OTHER})": 20, ENDED: 10}


@pytest.mark.parametrize(
    ("environment", "kind", "says"),
    [
        ({"ONEDNN_JIT_PROFILE": "2"}, NoteKind.SCOPE, "oneDNN made none"),
        ({"ONEDNN_JIT_PROFILE": "0"}, NoteKind.INCOMPLETE, "ONEDNN_JIT_PROFILE=2"),
        ({}, NoteKind.INCOMPLETE, "ONEDNN_JIT_PROFILE=2"),
    ],
)
def test_missing_names_have_the_reason_that_holds(
    environment: dict[str, str], kind: NoteKind, says: str, tmp_path: Path
) -> None:
    names = tmp_path / "perf-1.map"
    (note,) = jit_notes(environment, names)
    assert note.kind is kind and says in note.text
    names.touch()
    assert jit_notes(environment, names) == []


@pytest.mark.parametrize(
    ("flags", "environment", "told"),
    [
        ({"amx_tile", "amx_bf16"}, {}, True),
        ({"amx_tile"}, {"ONEDNN_MAX_CPU_ISA": "avx512_core_bf16"}, False),
        ({"amx_tile"}, {"ONEDNN_MAX_CPU_ISA": "DEFAULT"}, True),
        ({"avx512f"}, {}, False),
    ],
)
def test_what_tiles_multiply_is_said_not_to_be_counted(
    flags: set[str], environment: dict[str, str], told: bool
) -> None:
    found = tile_notes(flags, environment)
    assert [note.subject for note in found] == ["bfloat16 and int8 operations"] * told
