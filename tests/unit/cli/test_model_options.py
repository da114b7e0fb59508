"""Options that a model would not heed, and libraries that are not there: refused before anything slow begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwprof.cli import model_options
from tests.support.command import hwprof_here


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("layers", "--model", "yolov8n", "--input-shape", "1,3"), "--input-shape"),
        (("collect", "--input-shape", "1,3"), "--input-shape"),
        (("layers", "--model", "a.b:c", "--batch", "1"), "--batch"),
        (("layers", "--model", "a.b:c", "--imgsz", "640", "--source", "photos"), "--source, --imgsz"),
        (("layers", "--model", "a.b:c", "--no-fuse"), "--fuse"),
    ],
)
def test_an_option_that_nobody_heeds_is_a_usage_error(tmp_path: Path, arguments: tuple[str, ...], option: str) -> None:
    """Also with the value that is the default: it was asked for."""
    done = hwprof_here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{option}: only for" in done.stderr
    assert list(tmp_path.iterdir()) == []


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
