"""Which tools are ended that hold the worker: by made-up files of /proc and looks at chosen times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hwprof.session.held_worker import HELD_S, HeldWorker

WORKER, TRACER = 700, 701


@pytest.mark.parametrize(
    ("states", "switches", "group", "killed"),
    [
        ("tttt", [5, 5, 5, 5], WORKER, True),  # held
        ("tttt", [5, 6, 7, 8], WORKER, False),  # stopped at each look, and going on between them
        ("tttt", [5, 5, 6, 6], WORKER, False),
        ("SSSS", [5, 5, 5, 5], WORKER, False),  # asleep
        ("tSSt", [5, 5, 5, 5], WORKER, False),
        ("tttt", [5, 5, 5, 5], 999, False),  # a debugger of the user's
    ],
)
def test_a_tool_that_holds_the_worker_is_ended(
    states: str, switches: list[int], group: int, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "getpgid", {TRACER: group}.__getitem__)
    monkeypatch.setattr(os, "kill", lambda pid, number: ended.append(pid))
    held, file = HeldWorker(WORKER, tmp_path), tmp_path / str(WORKER) / "status"
    file.parent.mkdir()
    for step, (state, times) in enumerate(zip(states, switches, strict=True)):
        file.write_text(
            f"Name:\tpython\nState:\t{state} (whatever)\nTracerPid:\t{TRACER}\n"
            f"voluntary_ctxt_switches:\t{times}\nnonvoluntary_ctxt_switches:\t2\n"
        )
        held.look(100 + step * 0.4 * HELD_S)
    assert ended == ([TRACER] if killed else [])


def test_a_worker_that_has_ended_holds_nobody_up(tmp_path: Path) -> None:
    held = HeldWorker(WORKER, tmp_path)
    held.look(0)
    held.look(2 * HELD_S)
    with held:
        pass
