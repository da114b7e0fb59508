"""Options that a model would not heed, and libraries that are not there: refused before anything slow begins."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from hwprof.cli import model_options
from hwprof.errors import HwprofError
from hwprof.workload.spec import WorkloadSpec
from tests.support.command import hwprof_here


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("layers", "--model", "yolov8n", "--input-shape", "1,3"), "--input-shape"),
        (("collect", "--input-shape", "1,3"), "--input-shape"),
        (("layers", "--model", "a.b:c", "--batch", "1"), "--batch"),
        (("layers", "--model", "a.b:c", "--imgsz", "640", "--source", "photos"), "--source, --imgsz"),
        (("layers", "--model", "a.b:c", "--no-fuse"), "--fuse"),
        (("layers", "--model", "a.b:c", "--all-images"), "--all-images"),
        (("layers", "--model", "yolov8n-cls", "--conf", "0.25"), "--conf"),
    ],
)
def test_an_option_that_nobody_heeds_is_a_usage_error(tmp_path: Path, arguments: tuple[str, ...], option: str) -> None:
    """Also with the value that is the default: it was asked for."""
    done = hwprof_here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{option}: only for" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("mine", "--model mine:FACTORY"),
        ("mine.py", "--model mine:FACTORY"),
        ("package.mine", "--model package.mine:FACTORY"),
        ("mine.py:resnet", "did you mean mine:resnet?"),
        ("./package/mine.py:resnet", "did you mean package.mine:resnet?"),
        ("YOLOv7", "did you mean yolov7?"),
        ("yolov7.pt", "--model yolov7 --weights yolov7.pt"),
        ("weights/best.pt", "--model NAME --weights weights/best.pt"),
        ("my best.pt", "--model NAME --weights 'my best.pt'"),
        ("yours", "hwprof models lists them"),
    ],
)
def test_what_was_meant_by_a_model_that_there_is_not(tmp_path: Path, model: str, meant: str) -> None:
    (tmp_path / "package").mkdir()
    for file in (tmp_path / "mine.py", tmp_path / "package" / "mine.py"):
        file.write_text("")
    done = hwprof_here("layers", "--model", model, "--input-shape", "1,3,2,2", cwd=tmp_path)
    assert done.returncode == 2
    assert f"Try: {meant}" in done.stderr


@pytest.mark.parametrize(
    ("model", "missing", "extra"),
    [("a.b:c", "torch", "torch"), ("yolov8n", "torch", "yolo"), ("yolov8n", "ultralytics", "yolo")],
)
@pytest.mark.parametrize("command", ["collect", "layers"])
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, model: str, missing: str, extra: str
) -> None:
    found: Any = model_options.find_spec  # type: ignore[attr-defined]
    monkeypatch.setattr(model_options, "find_spec", lambda name: None if name == missing else found(name))
    done = hwprof_here(command, "--model", model, cwd=tmp_path)
    assert done.returncode == 1
    assert f"{missing} is not installed" in done.stderr and f"hwprof[{extra}]" in done.stderr
    assert list(tmp_path.iterdir()) == [], "a run that never began leaves nothing"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seed", str(1 << 64)),
        ("--seed", str(-(1 << 63) - 1)),
        ("--seed", "9" * 4000),
        ("--threads", "1000000"),
        ("--threads", "9" * 4000),
        ("--imgsz", "16385"),
        ("--imgsz", "9" * 5000),
        ("--batch", str(1 << 70)),
        ("--input-shape", f"1,{1 << 41}"),
        ("--input-shape", "1048577,1048577"),
    ],
)
@pytest.mark.parametrize("command", ["collect", "layers"])
def test_a_number_that_no_machine_can_do_is_a_usage_error(
    tmp_path: Path, command: str, arguments: tuple[str, str]
) -> None:
    done = hwprof_here(command, "--model", "torch.nn:Identity", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert arguments[0] in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--iterations", "--warmup", "--top", "--frequency"])
@pytest.mark.parametrize("number", [str(1 << 70), "9" * 30])
def test_counts_of_iterations_and_rows_are_bounded(tmp_path: Path, option: str, number: str) -> None:
    done = hwprof_here("collect", "--model", "torch.nn:Identity", option, number, cwd=tmp_path)
    assert done.returncode == 2
    assert option in done.stderr


def test_a_current_folder_that_is_gone_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(Path, "cwd", gone)
    with pytest.raises(HwprofError, match="current folder"):
        model_options.check_model(WorkloadSpec(model="yolov8n"))


@pytest.mark.parametrize(
    "model",
    [
        "",
        ".",
        "/",
        "..",
        "./",
        "/.",
        "../small:net",
        ".small:net",
        ":net",
        "a b:net",
        "__main__:net",
        f"{'a' * 5000}:net",
    ],
)
@pytest.mark.parametrize("command", ["layers", "collect"])
def test_what_names_no_model_is_bad_usage(tmp_path: Path, command: str, model: str) -> None:
    done = hwprof_here(command, f"--model={model}", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "defect of hwprof" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
