"""What lies in the user's folder: its modules are the model's alone, and never take the place of Python's."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.run.directory import RunDirectory
from tests.support.command import hwprof
from tests.support.requirements import require_module

HOSTILE = ("types", "queue", "json", "profile", "polars", "torch")
QUICK = ("--iterations", "2", "--warmup", "1", "--passes", "measure", "--no-instrumented")
MODEL = """
import parts
import queue
assert hasattr(queue, "Queue"), queue
def made():
    return parts.layers()
"""
PARTS = "import torch\ndef layers():\n    return torch.nn.Sequential(torch.nn.Linear(3, 2))\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with modules of well-known names; each leaves a file ``NAME.ran``."""
    require_module("torch")
    require_module("ultralytics")
    for name in HOSTILE:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / name)!r} + '.ran', 'w')\n")
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "parts.py").write_text(PARTS)
    return tmp_path


@pytest.mark.parametrize(
    "model", [("--model", "yolov8n", "--imgsz", "64"), ("--model", "mine:made", "--input-shape", "1,3")]
)
def test_no_module_of_the_folder_runs_in_the_place_of_another(hostile: Path, model: tuple[str, ...]) -> None:
    done = hwprof("collect", *model, *QUICK, cwd=hostile)
    assert done.returncode == 0, done.stderr
    assert not list(hostile.glob("*.ran"))
    assert (RunDirectory.latest(hostile / "results").path / "layers.csv").exists()  # by the process of its own
