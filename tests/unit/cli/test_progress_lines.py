"""What a log gets to read of a run: a line a phase, and not too many."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hwprof.cli.progress import Bars
from hwprof.cli.progress_lines import AGAIN_S, EVERY_S, ProgressLines


def test_a_phase_has_one_line_with_its_pass_until_it_lasts_long() -> None:
    lines = ProgressLines()
    assert lines.due(0.0) is None, "nothing has begun"
    lines.phase("measure", "importing torch", None)
    lines.phase("measure", "building the model", None)
    found = [lines.due(now) for now in (EVERY_S, 2 * EVERY_S, EVERY_S + AGAIN_S - 1, EVERY_S + AGAIN_S)]
    assert found == ["[measure] building the model", None, None, "[measure] building the model"]
    lines.phase("instrumented", "building the model", None)
    assert lines.due(EVERY_S + AGAIN_S + 1) == "[instrumented] building the model", "another pass"


def test_a_line_says_how_far_it_is() -> None:
    lines = ProgressLines()
    lines.phase("instrumented", "measuring (the pass takes about 40 s)", 800)
    for _ in range(120):
        lines.step()
    assert lines.due(EVERY_S) == "[instrumented] measuring (the pass takes about 40 s): 120 of 800"
    lines.phase("", "writing trace.pftrace", None)
    lines.reached(3, 7)
    assert lines.due(2 * EVERY_S) == "[run] writing trace.pftrace: 3 of 7"


def test_what_cannot_wait_is_told_at_once_and_the_phase_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stderr", log)
        with Bars() as bars:
            bars.phase("measure", "measuring", 12)
            bars.tell("measure", "the worker is stopped")
            assert (tmp_path / "log").read_text() == "[measure] the worker is stopped\n"
            bars.step()


def test_a_terminal_is_told_above_its_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Bars() as bars:
        bars.phase("measure", "measuring", 12)
        bars.tell("measure", "the worker is stopped")
    assert "[measure] the worker is stopped" in capsys.readouterr().err


def test_what_somebody_else_prints_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with Bars() as bars:
            bars.phase("layers", "building", None)
            bars.pass_on("[bold]12 of 3[/]")
        assert "[bold]12 of 3[/]" in capsys.readouterr().err
