"""Remedies whose gain is known, tried; and what happens where one cannot be."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from hwprof.run.directory import RunDirectory
from tests.support.command import TESTS_MODELS, hwprof, start_hwprof
from tests.support.models.remedies import ADDED, FASTER, HELPER_S, SLOWER, WITHOUT_S
from tests.support.processes import gone_soon
from tests.support.requirements import require_module

OPTIONS = ("--passes", "measure", "--no-instrumented", "--iterations", "3", "--threads", "1")


MODEL = "tests.support.models.remedies:factory"


def measured(folder: Path) -> RunDirectory:
    done = hwprof("collect", "--model", MODEL, *OPTIONS, cwd=folder, environment=TESTS_MODELS)
    assert done.returncode == 0, done.stderr
    return RunDirectory.latest(folder / "results")


def tried(folder: Path, *options: str) -> dict[str, Any]:
    done = hwprof("try", *options, "--format", "json", cwd=folder, environment=TESTS_MODELS)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_module("torch")
    folder = tmp_path_factory.mktemp("try")
    measured(folder)
    tried(folder, "--remedies", "active_wait,bind_threads,keep_memory", "--time", "20")
    return folder


def rows_of(place: Path) -> dict[str, Any]:
    trials = RunDirectory.latest(place / "results").manifest.trials
    assert trials is not None and trials.inference_ns == pytest.approx(1e9 * WITHOUT_S, rel=0.1)
    return {"+".join(one.remedies): one for one in trials.rows}


def test_a_known_gain_and_a_known_loss_are_within_their_intervals(place: Path) -> None:
    rows = rows_of(place)
    faster, slower = rows["active_wait"].inference, rows["bind_threads"].inference
    assert faster.helps and faster.value == pytest.approx(FASTER - 1, abs=0.02)
    assert slower.harms and slower.value == pytest.approx(SLOWER - 1, abs=0.03)
    assert faster.low < faster.value < faster.high
    assert all(rows[name].processes >= 3 and rows[name].calls >= 3 for name in ("active_wait", "bind_threads"))


THREADED = """
import torch

class Threaded(torch.nn.Linear):
    def forward(self, x):
        torch.set_num_threads(3)
        return super().forward(x)

def factory():
    return Threaded(8, 8), torch.rand(1, 8)
"""


def test_a_number_of_threads_that_the_model_overrules_was_not_tried(tmp_path: Path) -> None:
    require_module("torch")
    (tmp_path / "threaded.py").write_text(THREADED)
    done = hwprof("collect", "--model", "threaded:factory", *OPTIONS, cwd=tmp_path)
    assert done.returncode == 0 and " · 3 threads" in done.stdout, done.stderr
    notes = " ".join(hwprof("report", "--all", cwd=tmp_path).stdout.split())
    assert "the model's own code sets 3 threads at each call, not 1" in notes
    refused = hwprof("try", "--remedies", "threads=2", "--time", "5", cwd=tmp_path)
    assert refused.returncode == 1 and "sets 3 threads at each call, not 2. Try: " in refused.stderr


def test_how_far_outputs_differ(place: Path) -> None:
    rows = rows_of(place)
    assert rows["bind_threads"].outputs.largest == pytest.approx(ADDED)
    assert rows["active_wait"].outputs.largest == 0 and rows["active_wait"].outputs.tensors == 1
    assert rows["active_wait"].peak_bytes > 10e6


def test_a_remedy_in_which_the_model_dies_is_told_and_costs_no_other(place: Path) -> None:
    died = rows_of(place)["keep_memory"]
    assert died.inference is None and died.reason == "it ended with status 7"


def test_the_report_has_it_and_nothing_is_left(place: Path) -> None:
    shown = hwprof("report", cwd=place).stdout
    assert "tried -25" in shown or "tried -24" in shown, shown
    assert not [folder for folder in Path("/proc").glob("[0-9]*") if is_helper(folder, place)]


def test_where_all_fail_standard_error_says_why(place: Path) -> None:
    options = ("--remedies", "keep_memory", "--time", "3", "--format", "json")
    done = hwprof("try", *options, cwd=place, environment=TESTS_MODELS)
    assert done.returncode == 1 and "keep freed memory: it ended with status 7" in done.stderr, done.stderr
    rows = {"+".join(one["remedies"]): one for one in json.loads(done.stdout)["rows"]}
    assert rows["active_wait"]["earlier"] is not None and rows["keep_memory"]["earlier"] is None


def test_what_cannot_be_tried_is_one_line(tmp_path: Path) -> None:
    require_module("torch")
    run = measured(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for arguments, folder, code, text in (
        (("try", "--remedies", "magic"), tmp_path, 2, "there is no remedy or variant magic"),
        (("try", str(run.path)), elsewhere, 2, f"cd {tmp_path}"),
        (("try",), tmp_path, 1, "the run has no findings"),
    ):
        done = hwprof(*arguments, cwd=folder, environment=TESTS_MODELS)
        assert done.returncode == code and text in done.stderr and len(done.stderr.splitlines()) <= 2, done.stderr
    manifest = run.path / "run.json"
    found = json.loads(manifest.read_text())
    for change, text in (({"asked": {}}, "an older version"), ({"machine": {"hostname": "other"}}, "another machine")):
        changed = found | {key: (found[key] | value if value else value) for key, value in change.items()}
        manifest.write_text(json.dumps(changed))
        done = hwprof("try", cwd=tmp_path, environment=TESTS_MODELS)
        assert done.returncode == 2 and text in done.stderr, done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_however_it_ends_no_process_is_left(number: int, code: int, tmp_path: Path) -> None:
    require_module("torch")
    run = measured(tmp_path)
    process = start_hwprof("try", "--remedies", "active_wait,flush_denormals", cwd=tmp_path, environment=TESTS_MODELS)
    while len(contestants(process.pid)) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    ours = contestants(process.pid)
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == code
    assert all(gone_soon(pid) for pid in ours)
    assert RunDirectory.open(run.path).manifest.trials is None


def is_helper(folder: Path, place: Path) -> bool:
    """Whether a process is one that the model has started there: those of a killed command are no matter of it."""
    try:
        return HELPER_S in (folder / "cmdline").read_text() and (folder / "cwd").readlink() == place
    except OSError:
        return False


def contestants(parent: int) -> list[int]:
    """The processes that it has started."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, after = int(file.parent.name), file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after[1]) == parent:
            found.append(pid)
    return found
