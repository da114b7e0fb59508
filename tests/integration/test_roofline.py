"""What bounds layers whose bound is known, on this machine's own peaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwprof.run.directory import RunDirectory
from tests.support.command import TESTS_MODELS, hwprof
from tests.support.requirements import require_module

MODEL = ("--model", "tests.support.models.bounds:factory", "--threads", "1", "--iterations", "12")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    require_module("torch")
    folder = tmp_path_factory.mktemp("roofline")
    options = ("--passes", "measure,trace", "--no-instrumented", "--no-pyspy", "--peaks")
    environment = {**TESTS_MODELS, "XDG_CACHE_HOME": str(folder / "cache")}
    done = hwprof("collect", *MODEL, *options, cwd=folder, environment=environment)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.latest(folder / "results").path
    said = hwprof("report", str(run), "--format", "json", cwd=folder)
    return json.loads(said.stdout)["roofline"], run


@pytest.mark.alone
def test_products_are_bounded_by_compute_and_a_sum_of_long_arrays_by_dram(found: tuple[dict[str, Any], Path]) -> None:
    roofline, _ = found
    rows = {one["path"]: one for one in roofline["rows"]}
    assert rows["products"]["roof"] == "FP32" and rows["products"]["bound"] == "compute", rows["products"]
    assert rows["products"]["gflops_from"] == "analytic"
    added = rows["added"]
    assert added["roof"] == "DRAM" and added["bound"] == "DRAM bandwidth", added
    assert added["bytes_from"] == {"DRAM": "modelled"} and added["confidence"] != "high"
    assert rows["sleeping"]["bound"] == "overhead" and rows["tiny"]["bound"] == "overhead", rows["tiny"]
    assert all(0 <= (one["share_of_roof"] or 0) <= 1.3 for one in roofline["rows"])


@pytest.mark.alone
def test_the_run_keeps_its_peaks_and_the_page_of_a_layer_says_the_bound(found: tuple[dict[str, Any], Path]) -> None:
    roofline, run = found
    peaks = RunDirectory.open(run).manifest.peaks
    assert peaks is not None and peaks.created == roofline["measured"]
    assert (run / "roofline.csv").exists()
    page = hwprof("report", str(run), "--layer", "products", cwd=run.parent).stdout
    assert "bound" in page and "compute (confidence: " in page


def test_without_peaks_there_is_no_section_and_the_remedy(tmp_path: Path) -> None:
    require_module("torch")
    options = ("--model", "tests.support.models.calls:quick", "--input-shape", "1,8", "--iterations", "3")
    passes = ("--passes", "measure", "--no-instrumented", "--threads", "1")
    done = hwprof("collect", *options, *passes, cwd=tmp_path, environment=TESTS_MODELS)
    assert done.returncode == 0 and "Roofline" not in done.stdout
    said = json.loads(hwprof("report", "--format", "json", cwd=tmp_path).stdout)
    assert said["roofline"] is None and said["absent"]["roofline"]["remedy"] == "hwprof peaks --threads 1"
