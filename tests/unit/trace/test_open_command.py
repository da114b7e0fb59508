from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hwprof.cli.app import run as run_command
from hwprof.trace import viewer
from tests.support import synthetic_run


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(viewer, "serve", lambda trace, **options: calls.append({"trace": trace, **options}))
    return calls


def test_the_latest_run_by_default_and_its_trace_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    run = synthetic_run.build(tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    assert run_command(["open"]) == 0
    (call,) = served
    assert call["trace"].resolve() == run.path / "trace.pftrace"
    assert call["trace"].stat().st_size > 10_000
    assert (call["offline"], call["browser"]) == (False, True)
    assert "startupCommands" in call["parameters"]
    written = call["trace"].stat().st_mtime_ns
    assert run_command(["open", "--offline", "--no-browser"]) == 0
    assert (served[1]["offline"], served[1]["browser"]) == (True, False)
    assert call["trace"].stat().st_mtime_ns == written, "a trace that is there is not written again"
    assert capfd.readouterr().out == ""


def test_a_run_by_path_or_by_name(tmp_path: Path, served: list[dict[str, Any]]) -> None:
    run = synthetic_run.build(tmp_path)
    assert run_command(["open", str(run.path)]) == 0
    assert run_command(["open", run.path.name, "-C", str(tmp_path)]) == 0
    assert [call["trace"] for call in served] == [run.path / "trace.pftrace"] * 2


@pytest.mark.parametrize("arguments", [["open"], ["open", "nowhere"]])
def test_no_run_is_one_line_and_exit_code_2(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    served: list[dict[str, Any]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(arguments) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1
    assert served == []


def test_a_pipe_in_the_place_of_the_trace_is_refused_at_once(
    tmp_path: Path, served: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    run = synthetic_run.build(tmp_path)
    os.mkfifo(run.path / "trace.pftrace")
    assert run_command(["open", str(run.path)]) == 1
    assert "is no regular file" in capfd.readouterr().err
    assert served == []


def test_a_trace_that_links_out_of_its_run_is_not_served(
    tmp_path: Path, served: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    run = synthetic_run.build(tmp_path / "runs")
    (tmp_path / "private").write_text("a password")
    (run.path / "trace.pftrace").symlink_to(tmp_path / "private")
    assert run_command(["open", str(run.path)]) == 1
    errors = capfd.readouterr().err
    assert len(errors.splitlines()) == 1 and "link" in errors
    assert served == []


def test_runs_reached_by_links_and_links_within_a_run_are_served(tmp_path: Path, served: list[dict[str, Any]]) -> None:
    run = synthetic_run.build(tmp_path / "runs")
    (run.path / "kept.pftrace").write_bytes(b"")
    (run.path / "trace.pftrace").symlink_to("kept.pftrace")
    (tmp_path / "linked").symlink_to(run.path)
    assert run_command(["open", str(tmp_path / "linked")]) == 0
    assert len(served) == 1


def test_a_trace_that_is_there_is_shown_beside_a_damaged_table(
    tmp_path: Path, served: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    run = synthetic_run.build(tmp_path)
    (run.path / "trace.pftrace").write_bytes(b"whole")
    (run.path / "samples.parquet").write_bytes(b"damaged")
    assert run_command(["open", str(run.path)]) == 0
    said = capfd.readouterr().err
    assert "nothing is pinned: samples.parquet of this run is damaged" in said
    assert "it is shown as it is: samples.parquet of this run is damaged" in said
    assert (run.path / "trace.pftrace").read_bytes() == b"whole"
    assert [call["parameters"] for call in served] == [{}]


@pytest.mark.parametrize("left", [0.5, 0.999, 0.0])
def test_a_trace_that_was_cut_is_made_again_from_the_tables(
    tmp_path: Path, served: list[dict[str, Any]], capfd: pytest.CaptureFixture[str], left: float
) -> None:
    run = synthetic_run.build(tmp_path)
    assert run_command(["open", str(run.path)]) == 0
    assert "does not end as it should" not in capfd.readouterr().err
    trace = run.path / "trace.pftrace"
    whole = trace.read_bytes()
    os.truncate(trace, int(left * len(whole)))
    assert run_command(["open", str(run.path)]) == 0
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "trace.pftrace does not end as it should (it was cut, or an older hwprof wrote it)"
    assert said[1].startswith("writing ") and trace.read_bytes() == whole
    assert len(served) == 2
