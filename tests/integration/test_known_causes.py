"""Models with a cause, and the same without it, through the command: the rule finds it, and is silent beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwprof.analysis.thread_facts import processors
from hwprof.hardware.machine import describe
from hwprof.run.directory import RunDirectory
from tests.support.command import TESTS_MODELS, collect, hwprof_here
from tests.support.requirements import require_module, require_sampler

pytestmark = pytest.mark.alone

USABLE = processors(describe())
COMMAND = ("--passes", "measure,trace", "--no-instrumented", "--no-pyspy", "--iterations", "5", "--warmup", "1")


def found(folder: Path, name: str, *options: str) -> tuple[dict[str, dict[str, Any]], RunDirectory]:
    """Findings by rule, and the run."""
    require_module("torch")
    require_sampler()
    model = ("--model", f"tests.support.models.causes:{name}")
    run = collect(folder, *model, *COMMAND, *options, environment=TESTS_MODELS)
    report = json.loads(hwprof_here("report", str(run.path), "--format", "json").stdout)
    return {one["rule"]: one for one in report["findings"]["rows"]}, run


@pytest.mark.parametrize(("name", "there"), [("denormal_fed", True), ("normal_fed", False)])
def test_layers_with_denormal_numbers_are_told_by_what_they_read(tmp_path: Path, name: str, there: bool) -> None:
    rules, run = found(tmp_path, name, "--threads", "1")
    shares = dict(run.read("layers").select("path", "denormal_share").iter_rows())
    assert (shares["divide"] > 0.99) == there and ("denormals" in rules) == there, (shares, rules)
    if there:
        assert rules["denormals"]["layers"] == ["divide"] and "set_flush_denormal" in rules["denormals"]["remedy"]


@pytest.mark.parametrize(("name", "there"), [("repeated_pooling", True), ("chained_pooling", False)])
def test_poolings_of_one_input_are_told_from_a_chain(tmp_path: Path, name: str, there: bool) -> None:
    rules, run = found(tmp_path, name)
    pools = run.read("layers").filter(type="MaxPool2d")
    assert pools["pooling"].null_count() == 0 and (pools["input"].n_unique() == 1) == there, pools
    assert ("repeated_pooling" in rules) == there, rules
    assert "scalar_pooling" not in rules, "channels last has vectors"
    if there:
        finding = rules["repeated_pooling"]
        assert finding["layers"] == [f"pyramid.pools.{n}" for n in range(3)] and "by 5, 5, 5" in finding["remedy"]
        assert 0 < finding["gain_low"] < finding["gain_high"] < 1


def test_python_that_computes_is_named_and_operators_are_not_blamed(tmp_path: Path) -> None:
    rules, _ = found(tmp_path, "python_heavy", "--threads", "1")
    assert "python_code" in rules and "dispatch" not in rules, rules


def test_threads_beyond_the_processors_are_found_by_how_many_were_ready(tmp_path: Path) -> None:
    rules, run = found(tmp_path, "big_gemm", "--threads", str(4 * USABLE))
    assert "oversubscription" in rules and "team_waits" not in rules, rules
    assert rules["oversubscription"]["remedy"] == f"torch.set_num_threads({USABLE})"
    machine = run.manifest.machine
    assert len({cpu for core in machine.siblings for cpu in core}) in (0, machine.logical_processors)
