"""Commands that take a run take it in the same forms."""

from __future__ import annotations

import importlib
from pathlib import Path

import click
import pytest

from hwprof.cli import app
from hwprof.cli.which_run import open_run
from hwprof.errors import UsageError
from tests.support.synthetic_run import build

HELP = "RUN is a run's folder, or the name of a run in --root; without it, the latest one there is shown."


def test_every_command_that_takes_a_run_takes_the_same_and_says_so() -> None:
    taking = []
    for name in app.COMMANDS:
        command: click.Command = getattr(importlib.import_module(f"hwprof.cli.{name}"), f"{name}_command")
        options = {parameter.name: parameter.opts for parameter in command.params}
        if "run" in options:
            taking.append(name)
            assert options["root"] == ["--root", "-C"]
            assert HELP in " ".join((command.help or "").split())
    assert taking == ["report", "open"]


def test_a_run_by_path_by_name_and_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = build(tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    for given in (run.path, run.path.relative_to(tmp_path), Path(run.path.name), None):
        assert open_run(given, Path("results")).path.resolve() == run.path


def test_a_folder_here_that_holds_no_run_does_not_hide_the_run_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = build(tmp_path / "results")
    (tmp_path / run.path.name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert open_run(Path(run.path.name), Path("results")).path.resolve() == run.path


@pytest.mark.parametrize(
    ("given", "message"), [("nowhere", "nor a run of that name"), ("here", "is not a run"), ("a/b", "is not a run")]
)
def test_what_is_no_run_is_bad_usage(given: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        open_run(Path(given), Path("results"))


def test_a_report_by_the_runs_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = build(tmp_path)
    assert app.run(["report", run.path.name, "--root", str(tmp_path), "--width", "100"]) == 0
    assert run.path.name in capsys.readouterr().out
