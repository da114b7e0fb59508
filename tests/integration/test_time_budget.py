"""Where the time of layers goes whose work is known."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from hwprof.run.directory import RunDirectory
from tests.support.command import TESTS_MODELS, hwprof
from tests.support.models.budgets import MOST
from tests.support.requirements import require_module

MODEL = ("--model", "tests.support.models.budgets:factory", "--iterations", "12", "--passes", "measure,trace")


@pytest.fixture(scope="module", params=["1", "2"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    require_module("torch")
    folder = tmp_path_factory.mktemp("budget")
    options = ("--threads", request.param, "--no-instrumented", "--no-pyspy", "--frequency", "4000")
    done = hwprof("collect", *MODEL, *options, cwd=folder, environment=TESTS_MODELS)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.latest(folder / "results").path
    said = hwprof("report", str(run), "--format", "json", cwd=folder)
    return json.loads(said.stdout)["time_budget"], run


def shares(budget: dict[str, Any], which: str = "share") -> dict[str, float]:
    """Of the time that others left the calling thread; ``which``: of a share of so many samples, or its interval's
    end."""
    parts = {one["part"]: one for one in budget["parts"]}
    there = 1 - (parts.pop("preempted")["share"] if "preempted" in parts else 0.0)
    return {part: (one["share"] if one[which] is None else one[which]) / there for part, one in parts.items()}


@pytest.mark.alone
def test_each_layer_spends_its_time_on_what_it_does(found: tuple[dict[str, Any], Path]) -> None:
    budget, _ = found
    layers = {one["path"]: one for one in budget["layers"]}
    for path, part in MOST.items():
        of = shares(layers[path])
        assert max(of, key=lambda one: of[one]) == part, (path, of)
        most = shares(layers[path], "share_high")[part]
        assert most >= (0.75 if path in ("python", "sleeping") else 0.5), (path, of, most)
    assert shares(layers["faulting"]).get("other", 0.0) <= 0.15  # locks and counters of the kernel are part of a fault


@pytest.mark.alone
def test_every_budget_adds_up(found: tuple[dict[str, Any], Path]) -> None:
    budget, run = found
    for one in (budget["whole"], *budget["layers"], *budget["blocks"]):
        assert sum(part["share"] for part in one["parts"]) == pytest.approx(1, abs=1e-9)
        assert sum(part["threads_share"] for part in one["parts"]) == pytest.approx(1, abs=1e-9)
        assert sum(part["ns"] for part in one["parts"]) == pytest.approx(one["elapsed_ns"])
        for part in one["parts"]:
            assert "share_low" not in part or part["share_low"] <= part["share"] <= part["share_high"]
    assert all("share_low" in part for one in (budget["whole"], *budget["layers"]) for part in one["parts"])
    assert sum(one["elapsed_ns"] for one in budget["layers"]) <= 1.0001 * budget["whole"]["elapsed_ns"]
    with (run / "time_budget.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    whole = [float(row["share_ratio"]) for row in rows if row["what"] == "inference"]
    assert sum(whole) == pytest.approx(1)


@pytest.mark.alone
def test_the_report_and_the_page_of_a_layer_say_it(found: tuple[dict[str, Any], Path]) -> None:
    _, run = found
    for width in (80, 120):
        lines = hwprof("report", str(run), "--all", "--width", str(width), cwd=run.parent).stdout.splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("Where the time goes, pass trace: "))
        table = lines[at : at + 20]
        assert any(line.startswith("python") and "dddddddd" in line for line in table), table
        assert any(line.startswith("sleeping") and "bbbbbbbb" in line for line in table), table
        assert any(line.startswith("What to change first") for line in lines[:at])
    said = json.loads(hwprof("report", str(run), "--format", "json", cwd=run.parent).stdout)["findings"]["rows"]
    lost = next(one for one in said if one["rule"] in ("dispatch", "python_code"))
    # the root's own code may come before the small layers, of which Python has a part only
    assert {"python", "tiny"} <= set(lost["layers"][:3]) and 0 <= lost["gain_low"] < lost["gain_high"] <= 1
    assert not {"layout_changes", "scalar_pooling"} & {one["rule"] for one in said}, "it convolves nothing"
    page = hwprof("report", str(run), "--layer", "sleeping", cwd=run.parent).stdout
    assert "Where the time goes: blocked" in page
