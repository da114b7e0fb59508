"""What ``hwprof collect`` makes before anything is measured."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hwprof.cli import app, collection, products
from hwprof.run import atomic
from hwprof.workload.spec import WorkloadSpec
from tests.support.synthetic_run import build


@pytest.mark.parametrize("model", ["mine:" + "x" * 300, "mine:" + "ä" * 300])
def test_a_long_name_of_a_model_makes_a_folder_that_file_systems_take(model: str, tmp_path: Path) -> None:
    run = collection._create(tmp_path, WorkloadSpec(model=model), None)
    assert run.path.is_dir() and run.path.name == run.manifest.name
    assert "mine-" in run.path.name


@pytest.mark.parametrize("option", ["--wait-quiet", "--conf", "--iou"])
@pytest.mark.parametrize("number", ["nan", "inf", "-nan"])
def test_what_is_no_number_is_a_usage_error(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """NaN is on neither side of a range."""
    assert app.run(["collect", f"{option}={number}"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["collect", "--output="], "--output: a folder has a name; the one that you are in is"),
        (["collect", "--output=/dev/null"], "--output: /dev/null is no folder"),
        (["report", "--root", __file__], f"{__file__} is no folder"),
        (["collect", "--passes="], "name one, or leave --passes out"),
        (["collect", "--passes=measure,measure"], "name each once"),
        (["collect", f"--seed={1 << 64}"], "choose one from"),
    ],
)
def test_what_cannot_be_meant_is_told_before_anything_is_made(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert app.run([*arguments, *(["--model=yolov8n", "--no-peaks"] if arguments[0] == "collect" else [])]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1 and says in told.replace("'", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["collect", "--model=yolov8n", "--output=dangling"],
            "--output: dangling is a link to gone, which is not there",
        ),
        (["collect", "--model=yolov8n", "--output=dangling/runs"], "--output: dangling is a link to gone"),
        (["report", "--root=dangling"], "--root: dangling is a link to gone, which is not there"),
        (["collect", "--model=yolov8n", "--output=circle"], "--output: circle is a link to circle, which is not there"),
    ],
)
def test_a_link_that_leads_nowhere_is_told_as_that(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, target in (("dangling", "gone"), ("circle", "circle")):
        Path(name).symlink_to(target)
    assert app.run(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    option = told.partition(":")[0]
    remedy = f"another {option}" if "circle" in told else f"mkdir -p gone, or another {option}"
    assert told in line and line.endswith(f". Try: {remedy}")
    assert len(list(tmp_path.iterdir())) == 2, "nothing was made"


def test_a_second_interruption_does_not_hide_where_the_run_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = build(tmp_path)

    def again(_: Path) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(atomic, "remove_parts", again)
    before = signal.getsignal(signal.SIGINT)
    try:
        told = collection._interrupted(run, KeyboardInterrupt())
        signal.raise_signal(signal.SIGINT)  # while the processes that are left end
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.path.name in str(told) and told.exit_code == 130


def test_a_folder_whose_name_begins_like_an_option_is_named_so_that_it_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = build(tmp_path / "-x")
    assert products.name_of(run) == f"./-x/{run.path.name}"
