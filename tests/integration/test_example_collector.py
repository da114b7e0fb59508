"""The example of a third party's collector: its own distribution, installed, run, and found in all that a run gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory
from tests.support.command import ROOT, hwprof

EXAMPLE = ROOT / "examples" / "context_switches"
NAME = "context_switches"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where it is installed, without any network."""
    target = tmp_path_factory.mktemp("installed")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", *offline, str(EXAMPLE)], check=True, capture_output=True
    )
    return {"PYTHONPATH": f"{ROOT}:{target}"}


@pytest.fixture(scope="module")
def run(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "small.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Sequential(torch.nn.Linear(8, 8))\n"
    )
    there = environment | {"PYTHONPATH": f"{environment['PYTHONPATH']}:{folder}"}
    done = hwprof(
        "collect", "--model", "small:make", "--input-shape", "1,8", "--passes", "measure", "--iterations", "3",
        "--collectors", f"{NAME},memory", "--switch-period", "5", cwd=folder, environment=there,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return RunDirectory.latest(folder / "results")


def test_its_option_is_in_the_help(environment: dict[str, str]) -> None:
    shown = hwprof("collect", "--help", environment=environment).stdout
    assert f"Collector {NAME}:" in shown and "--switch-period MS" in shown and "--no-context-switches" in shown


@pytest.mark.parametrize("left_out", ["--no-context-switches", "--collectors=memory"])
def test_a_run_without_it_does_not_ask_for_its_option(
    environment: dict[str, str], tmp_path: Path, left_out: str
) -> None:
    (tmp_path / "small.py").write_text("import torch\ndef make():\n    return torch.nn.Linear(8, 8)\n")
    there = environment | {"PYTHONPATH": f"{environment['PYTHONPATH']}:{tmp_path}"}
    arguments = ("--model", "small:make", "--input-shape", "1,8", "--passes", "measure", "--iterations", "1")
    done = hwprof("collect", *arguments, "--no-instrumented", left_out, cwd=tmp_path, environment=there)
    assert done.returncode == 0, done.stderr
    asked = hwprof("collect", *arguments, left_out, "--switch-period", "5", cwd=tmp_path, environment=there)
    assert asked.returncode == 2
    assert "--switch-period: the collector context_switches does not run" in asked.stderr


def test_it_conforms(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hwprof.collector.conformance", NAME],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"{NAME}: conforms"], done.stderr


def test_its_detail_and_options_are_in_the_manifest_and_the_reports_json(
    run: RunDirectory, environment: dict[str, str]
) -> None:
    (kept,) = [one for one in run.manifest.passes[0].collectors if one.name == NAME]
    assert (kept.state, kept.options) == ("ran", {"switch_period": 5})
    document: dict[str, Any] = json.loads(
        hwprof("report", str(run.path), "--format", "json", environment=environment).stdout
    )
    (shown,) = [one for record in document["passes"] for one in record["collectors"] if one["name"] == NAME]
    assert shown["detail"]["kind"] == "context-switches" and shown["detail"]["period_ms"] == 5
    assert shown["detail"]["switches"]["voluntary"] > 0


def test_its_readings_are_in_the_tables_the_report_the_csv_and_the_trace(run: RunDirectory) -> None:
    readings = run.read("series").filter(pl.col("name") == "switches/voluntary").sort("time_ns")
    assert readings.height > 3 and readings["value"].sum() > 0
    row = pl.read_csv(run.path / "series.csv").filter(pl.col("series") == "switches/voluntary").row(0, named=True)
    assert (row["readings"], row["last"]) == (readings.height, readings["value"][-1])
    shown = [line.split() for line in hwprof("report", str(run.path), "--all", columns=80).stdout.splitlines()]
    (printed,) = [words for words in shown if words[:1] == ["switches/voluntary"]]
    assert printed[-1] == str(readings.height)
    assert b"switches/voluntary" in (run.path / "trace.pftrace").read_bytes()


def test_it_is_small() -> None:
    code = (EXAMPLE / "hwprof_context_switches" / "collector.py").read_text()
    assert len([line for line in code.splitlines() if line.strip()]) <= 50
