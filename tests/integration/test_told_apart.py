"""Three layers that waste the processor in three ways are told apart by the report's JSON, each by its own figures."""

from __future__ import annotations

import itertools
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from collectors.sampler.collector import SamplerCollector
from tests.support.requirements import missing, require_module

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="code is followed on x86-64"),
]

ROOT = Path(__file__).parents[2]
COMMAND = (
    *(
        "collect",
        "--model",
        "tests.support.models.wasteful:factory",
        "--threads",
        "2",
        "--iterations",
        "5",
        "--warmup",
        "1",
    ),
    *("--collectors", "perf,sampler,instrumented", "--frequency", "1999", "--cache-model"),
)

EXPECTED = {
    "unvectorised": {"no vectors"},
    "streaming": {"from memory", "slow instructions"},
    "single_threaded": {"one thread"},
}

Figures = dict[str, dict[str, Any]]
"""By layer."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The JSON of one run."""
    require_module("torch")
    require_module("frida")
    available = SamplerCollector().availability()
    if not available.ok:
        missing(f"perf events ({available.reason})")
    place = tmp_path_factory.mktemp("apart")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def hwprof(*arguments: str) -> str:
        command = [sys.executable, "-m", "hwprof", *arguments]
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    hwprof(*COMMAND)
    found: dict[str, Any] = json.loads(hwprof("report", "--format", "json"))
    return found


def figures_of(report: dict[str, Any]) -> Figures:
    """What the report has of each of the layers."""
    (followed,) = report["instrumented"]["passes"]
    times = {layer["path"]: layer["time"] for layer in report["layers"]["rows"]}
    counted = {layer["path"]: layer["metrics"] for layer in followed["layers"]}
    sampled = {layer["path"]: layer for layer in report["kernels"]["layers"]}
    waiting = {layer["path"]: layer for layer in report["threads"]["layers"]}
    return {
        path: {
            "scalar": counted[path]["vector_scalar"],
            "llc_mpki": counted[path]["llc_mpki"],
            # of the fastest iteration: other programs on the machine make some slower
            "cpi": counted[path]["cpi"] * times[path]["min_ns"] / times[path]["median_ns"],
            "worker_share": counted[path]["worker_share"],
            "imbalance": sampled[path]["imbalance"],
            "finding": waiting[path]["largest_loss"] or "",
        }
        for path in EXPECTED
    }


def told(figures: Figures) -> dict[str, set[str]]:
    """What is wrong with each layer, by its figures."""
    usual_cpi = sorted(one["cpi"] for one in figures.values())[1]

    def of(one: dict[str, Any]) -> set[str]:
        found = {
            "no vectors": one["scalar"] > 90,
            "from memory": one["llc_mpki"] > 50,
            "slow instructions": one["cpi"] > 2 * usual_cpi,
            "one thread": one["imbalance"] > 0.8 and one["finding"].startswith("single-threaded"),
        }
        return {name for name, is_so in found.items() if is_so}

    return {path: of(one) for path, one in figures.items()}


def test_each_layer_is_told_by_what_it_wastes(report: dict[str, Any]) -> None:
    figures = figures_of(report)
    assert told(figures) == EXPECTED, figures
    assert figures["single_threaded"]["worker_share"] < 5
    assert all(figures[path]["worker_share"] > 30 for path in ("unvectorised", "streaming")), figures


def test_figures_of_other_layers_would_tell_something_else(report: dict[str, Any]) -> None:
    figures = figures_of(report)
    for order in itertools.permutations(EXPECTED):
        swapped = {path: figures[other] for path, other in zip(EXPECTED, order, strict=True)}
        assert (told(swapped) == EXPECTED) == (order == tuple(EXPECTED))
    for name in ("scalar", "llc_mpki", "imbalance"):
        values = [one[name] for one in figures.values()]
        turned = {
            path: one | {name: value}
            for (path, one), value in zip(figures.items(), values[1:] + values[:1], strict=True)
        }
        assert told(turned) != EXPECTED, name


def test_kernels_are_those_of_the_layers_operations(report: dict[str, Any]) -> None:
    hottest: dict[str, str] = {}
    for kernel in report["kernels"]["kernels"]:
        if kernel["layer"] in EXPECTED and kernel["domain"] not in ("openmp", "kernel"):
            hottest.setdefault(kernel["layer"], kernel["kernel"])
    assert "add_kernel" in hottest["streaming"]
    assert any(part in hottest["unvectorised"] for part in ("igam", "lgamma", "log", "exp")), hottest
    assert any(part in hottest["single_threaded"] for part in ("sigmoid", "exp")), hottest


def test_a_kernels_cpi_by_samples_is_that_of_a_layer_which_it_makes_up(report: dict[str, Any]) -> None:
    """The layer's is of its measured time and its busiest thread, the kernel's of sampled time and all threads: they
    are made of nothing in common but the instructions. Other programs make times longer, processor times not."""
    layers = {layer["path"]: layer["metrics"]["cpi"] for layer in report["layers"]["rows"]}
    (followed,) = report["instrumented"]["passes"]
    compared = 0
    for kernel in report["kernels"]["kernels"]:
        name = (kernel["layer"], kernel["kernel"], kernel["library"])
        share = next((one["share"] for one in followed["kernels"]
                      if (one["layer"], one["kernel"], one["library"]) == name), None)  # fmt: skip
        if kernel["layer"] in EXPECTED and share is not None and share > 0.9:
            compared += 1
            assert kernel["cpi_low"] < kernel["cpi"] < kernel["cpi_high"]
            assert 0.1 < kernel["cpi"] / layers[kernel["layer"]] < 1.3, (name, kernel["cpi"], layers)
    assert compared


def test_the_threads_times_and_the_critical_path_add_up(report: dict[str, Any]) -> None:
    waiting = report["threads"]
    for one in waiting["threads"]:
        on = one["busy_ns"] + one["waiting_ns"] + one["unsampled_ns"]
        off = one["preempted_ns"] + one["absent_ns"] + sum(one["blocked_ns"].values())
        assert on + off == pytest.approx(waiting["elapsed_ns"], rel=1e-6)
    assert sum(part["share"] for part in waiting["critical_path"]) == pytest.approx(1)
    assert sum(one["path_ns"] for one in waiting["threads"]) == pytest.approx(waiting["elapsed_ns"], rel=1e-6)
    (single,) = [layer for layer in waiting["layers"] if layer["path"] == "single_threaded"]
    calling = waiting["threads"][0]["tid"]
    own = sum(part["share"] for part in single["critical_path"] if part["tid"] == calling)
    assert own > 0.9, "nobody else is waited for"
