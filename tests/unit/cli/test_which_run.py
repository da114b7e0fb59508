"""Commands that take a run take it in the same forms."""

from __future__ import annotations

import errno
import importlib
import os
from pathlib import Path

import click
import pytest

from hwprof.cli import app
from hwprof.cli.which_run import open_run
from hwprof.errors import HwprofError, UsageError
from hwprof.run.directory import BENCH_FILE, RunDirectory
from hwprof.run.manifest import PassRecord
from tests.support.command import hwprof_here
from tests.support.synthetic_run import build

HELP = "RUN is a run's folder, or the name of a run in --root; without it, the latest one there that has figures."


def test_every_command_that_takes_a_run_takes_the_same_and_says_so() -> None:
    taking = []
    for name in app.COMMANDS:
        command: click.Command = getattr(
            importlib.import_module(f"hwprof.cli.{app.MODULES.get(name, name)}"), f"{name}_command"
        )
        options = {parameter.name: parameter.opts for parameter in command.params}
        if "run" in options:
            taking.append(name)
            assert options["root"] == ["--root", "-C"]
            assert HELP in " ".join((command.help or "").split())
    assert taking == ["report", "try", "open"]


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


def test_a_bench_is_no_run_and_says_what_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results" / "bench-1").mkdir(parents=True)
    (tmp_path / "results" / "bench-1" / BENCH_FILE).touch()
    monkeypatch.chdir(tmp_path)
    for given in ("bench-1", "results/bench-1"):
        with pytest.raises(UsageError, match=r"is a bench, and no run.*hwprof bench --resume results/bench-1"):
            open_run(Path(given), Path("results"))


@pytest.mark.parametrize(
    ("given", "message"), [("nowhere", "nor a run of that name"), ("here", "is not a run"), ("a/b", "is not a run")]
)
def test_what_is_no_run_is_bad_usage(given: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        open_run(Path(given), Path("results"))


def without_figures(root: Path, name: str, *records: PassRecord) -> RunDirectory:
    """A run as it is on the disk while its passes are in these states."""
    manifest = build(root / "elsewhere").manifest
    manifest.name, manifest.workload, manifest.passes = name, None, list(records)
    return RunDirectory.create(root, manifest)


FAILED = PassRecord(name="measure", status="failed", reason="out of memory")


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ((), "still being measured, or was killed"),
        ((PassRecord(name="measure"),), "still being measured, or was killed"),
        ((FAILED,), "has no figures"),
    ],
)
def test_a_newer_run_without_figures_hides_none_that_has_some(
    records: tuple[PassRecord, ...], told: str, tmp_path: Path
) -> None:
    shown = build(tmp_path)
    newer = without_figures(tmp_path, "29990101-000000-newer", *records)
    (tmp_path / "29980101-000000-damaged").mkdir()
    (tmp_path / "29980101-000000-damaged" / "run.json").write_text("{")
    done = hwprof_here("report", "--root", str(tmp_path))
    assert done.returncode == 0 and shown.path.name in done.stdout
    (line,) = done.stderr.splitlines()
    assert newer.path.name in line and shown.path.name in line and told in line
    by_name = hwprof_here("report", newer.path.name, "--root", str(tmp_path))
    assert by_name.returncode == 0 and by_name.stderr == "" and newer.path.name in by_name.stdout


def test_where_no_run_has_figures_the_newest_is_shown(tmp_path: Path) -> None:
    without_figures(tmp_path, "29980101-000000-older", FAILED)
    newer = without_figures(tmp_path, "29990101-000000-newer", PassRecord(name="measure"))
    done = hwprof_here("report", "--root", str(tmp_path))
    assert done.returncode == 0 and done.stderr == "" and newer.path.name in done.stdout
    assert "measure: running: still being measured, or was killed" in " ".join(done.stdout.split())


def test_a_later_pass_that_runs_does_not_hide_what_the_run_has(tmp_path: Path) -> None:
    build(tmp_path / "results")
    run = build(tmp_path / "results")
    run.manifest.passes.append(PassRecord(name="callgrind"))
    run.save_manifest()
    assert open_run(None, tmp_path / "results").path == run.path


def test_who_asks_for_a_run_that_is_not_there_is_told_of_the_newest(tmp_path: Path) -> None:
    for number in range(5):
        without_figures(tmp_path, f"2999010{number + 1}-000000-made")
    with pytest.raises(UsageError) as failure:
        open_run(Path("nosuchrun"), tmp_path)
    named = [f"2999010{number}-000000-made" for number in (5, 4, 3)]
    assert failure.value.remedy == f"{', '.join(named)} (2 older)"


def test_a_report_by_the_runs_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = build(tmp_path)
    assert app.run(["report", run.path.name, "--root", str(tmp_path), "--width", "100"]) == 0
    assert run.path.name in capsys.readouterr().out


@pytest.mark.parametrize("given", ["closed", "elsewhere/closed"])
def test_a_run_where_nobody_may_look_is_told_in_one_line(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may be root, who may look everywhere."""

    def refuse(path: object, *_: object, **__: object) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    monkeypatch.setattr("hwprof.run.regular_files.os.open", refuse)
    with pytest.raises(HwprofError, match=r"cannot read .*Permission denied"):
        open_run(Path(given), tmp_path)
