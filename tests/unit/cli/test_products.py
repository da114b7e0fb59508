"""The last lines of a collect name what is there, and nothing else."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hwprof.cli.products import Shown, show_run
from hwprof.errors import FullDiskError
from tests.support.synthetic_run import build


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ((), "tables (Parquet)"),
        (("layers.csv",), "tables (Parquet, CSV)"),
        (("images/bus.jpg", "trace.pftrace"), "tables (Parquet), images, trace.pftrace"),
    ],
)
def test_what_could_not_be_written_is_not_named(
    written: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = build(tmp_path)
    (run.path / "images").mkdir()
    for name in written:
        (run.path / name).touch()
    show_run(run, Shown("text", 3, 400, 1), "", lambda: None)
    lines = capsys.readouterr().out.splitlines()
    last = lines[next(number for number, line in enumerate(lines) if line.startswith("kept in ")) :]
    assert last[0].endswith(f": {named}")
    assert [line.split()[1] for line in last[1:]] == [*(["open"] if "trace.pftrace" in written else []), "report"]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_line_but_a_command_is_longer_than_the_terminal(
    columns: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = build(tmp_path)
    (run.path / "trace.pftrace").touch()
    monkeypatch.chdir(run.path.parent)
    show_run(
        run,
        Shown("text", 3, columns, 1),
        "66,546 slices, pass measure: 10 of 62 iterations (--trace-limit)",
        lambda: None,
    )
    last = capsys.readouterr().out.split("\nkept in ")[1].splitlines()
    commands = [line for line in last if line.startswith("  hwprof ")]
    assert [command.split()[:2] for command in commands] == [["hwprof", "open"], ["hwprof", "report"]]
    assert all(len(line) <= columns for line in last if line not in commands)
    assert "10 of 62 iterations (--trace-limit)" in " ".join(" ".join(last).split())


def test_a_report_is_shown_before_the_last_files_are_there_and_says_what_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = build(tmp_path)
    shown: list[str] = []

    def writes() -> None:
        shown.append(capsys.readouterr().out)
        (run.path / "layers.csv").touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    failure = show_run(run, Shown("text", 3, 100, 1), "", writes)
    assert isinstance(failure, FullDiskError)
    assert "LAYER" in shown[0].upper() and "kept in" not in shown[0]
    assert "tables (Parquet, CSV)" in " ".join(capsys.readouterr().out.split())
