"""A model that prints without end fills no disk."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hwprof.run.directory import RunDirectory
from hwprof.session.bounded_log import BOUND_BYTES, KEPT_BYTES
from tests.support.command import collect
from tests.support.requirements import require_module

QUICK = ("--input-shape", "1,3", "--warmup", "1", "--passes", "measure", "--no-instrumented")
MODELS = """
import os, signal, torch
from pathlib import Path
HERE = Path.cwd()
class Does(torch.nn.Module):
    def __init__(self, act):
        super().__init__()
        self.inner, self.act, self.calls = torch.nn.Linear(3, 2), act, 0
    def forward(self, x):
        self.calls += 1
        self.act(self.calls)
        return self.inner(x)
def printing():
    def speak(call):
        (HERE / "calls").write_text(str(call))
        print(20_000_000 * "y", flush=True)
    return Does(speak)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    require_module("torch")
    (tmp_path / "mine.py").write_text(MODELS)
    return tmp_path


def test_what_a_model_prints_is_bounded_and_the_run_says_what_is_missing(place: Path) -> None:
    run = collect(place, "--model", "mine:printing", *QUICK, "--iterations", "9")
    size_bytes = (run.path / "raw" / "measure" / "worker.log").stat().st_size
    assert KEPT_BYTES < size_bytes <= BOUND_BYTES + 200
    (told,) = re.findall(r"pass measure: ([\d,]+) MB .* from raw/measure/worker.log", "\n".join(notes(run)))
    dropped_bytes = int(told.replace(",", "")) * 1e6
    missing_bytes = 20_000_001 * int((place / "calls").read_text()) - size_bytes
    assert missing_bytes / 2 < dropped_bytes < missing_bytes + 1e6  # less, where it was cut while it was printed into


def notes(run: RunDirectory) -> list[str]:
    assert run.manifest.workload is not None
    return run.manifest.workload.notes
