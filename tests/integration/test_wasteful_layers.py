"""Three layers that waste the processor in three ways: each stands out by the figure that is about its way, and by no
other."""

from __future__ import annotations

import json
import platform
from typing import Any

import pytest

from hwprof.analysis.parallelism import MOSTLY
from tests.support.command import TESTS_MODELS, collect, hwprof_here
from tests.support.document_parts import instrumented_layers
from tests.support.requirements import require_module, require_sampler

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64"),
]

COMMAND = (
    *("--model", "tests.support.models.wasteful:factory", "--threads", "2", "--iterations", "5", "--warmup", "1"),
    *("--collectors", "perf,sampler,instrumented", "--frequency", "1999", "--cache", "llc=32M/16"),
)
WAITING = ("openmp", "kernel")
LAYERS = ("unvectorised", "streaming", "single_threaded")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The JSON of one run."""
    require_module("torch")
    require_module("frida")
    require_sampler()
    run = collect(tmp_path_factory.mktemp("wasteful"), *COMMAND, environment=TESTS_MODELS)
    found: dict[str, Any] = json.loads(hwprof_here("report", str(run.path), "--format", "json").stdout)
    return found


def counted(report: dict[str, Any], metric: str) -> dict[str, float]:
    """A metric of the instrumented pass, by layer: it depends on nothing but the code and the caches in COMMAND."""
    rows = instrumented_layers(report)["rows"]
    return {layer["path"]: layer["metrics"][metric] for layer in rows if layer["path"] in LAYERS}


def test_one_layer_works_element_by_element(report: dict[str, Any]) -> None:
    scalar = counted(report, "vector_scalar")
    assert scalar["unvectorised"] > 90
    assert scalar["streaming"] < 50 and scalar["single_threaded"] < 50, scalar


def test_one_layer_has_its_data_from_memory(report: dict[str, Any]) -> None:
    misses = counted(report, "llc_mpki")
    assert misses["streaming"] > 50
    assert misses["unvectorised"] < 5 and misses["single_threaded"] < 5, misses


def test_one_layer_leaves_its_workers_nothing_to_do(report: dict[str, Any]) -> None:
    share = counted(report, "worker_share")
    assert share["single_threaded"] < 5
    assert share["unvectorised"] > 30 and share["streaming"] > 30, share
    layers = {layer["path"]: layer for layer in report["threads"]["layers"]}
    alone = [path for path in LAYERS if (layers[path]["largest_loss"] or "").startswith("single-threaded")]
    parts = layers["single_threaded"]["critical_path"]
    if sum(part["share"] for part in parts if part["state"] == "preempted") < 1 - MOSTLY:
        assert alone == ["single_threaded"], layers
    else:  # other programs had the processor for so long that this is what the layer loses most to
        assert alone == [] and layers["single_threaded"]["largest_loss"].startswith("preempted"), layers
    imbalance = {layer["path"]: layer["imbalance"] for layer in report["kernels"]["layers"] if "imbalance" in layer}
    assert max(LAYERS, key=lambda path: imbalance[path]) == "single_threaded", imbalance
    assert imbalance["single_threaded"] > 0.8


def test_what_comes_from_memory_takes_the_most_cycles_an_instruction(report: dict[str, Any]) -> None:
    """By processor time and with its interval, so that other programs do not make it so."""
    hottest: dict[str, dict[str, Any]] = {}
    for kernel in report["kernels"]["kernels"]:
        if kernel["layer"] in LAYERS and "cpi" in kernel and kernel["domain"] not in WAITING:
            hottest.setdefault(kernel["layer"], kernel)
    assert set(hottest) == set(LAYERS)
    streaming = hottest.pop("streaming")
    for other in hottest.values():
        assert streaming["cpi_low"] > other["cpi_high"], (streaming, other)


def test_kernels_are_those_of_the_layers_operations(report: dict[str, Any]) -> None:
    hottest: dict[str, str] = {}
    for kernel in report["kernels"]["kernels"]:
        if kernel["layer"] in LAYERS and kernel["domain"] not in WAITING:
            hottest.setdefault(kernel["layer"], kernel["kernel"])
    assert "add_kernel" in hottest["streaming"]
    assert any(part in hottest["unvectorised"] for part in ("igam", "lgamma", "log", "exp")), hottest
    assert any(part in hottest["single_threaded"] for part in ("sigmoid", "exp")), hottest


def test_a_kernels_cpi_by_samples_is_that_of_a_layer_which_it_makes_up(report: dict[str, Any]) -> None:
    """The layer's is of its measured time and its busiest thread, the kernel's of sampled time and all threads: they
    are made of nothing in common but the instructions. Other programs make times longer, processor times not."""
    layers = {layer["path"]: layer["metrics"].get("cpi") for layer in report["layers"]["rows"]}
    (followed,) = report["instrumented"]["passes"]
    compared = 0
    for kernel in report["kernels"]["kernels"]:
        name = (kernel["layer"], kernel["kernel"], kernel["library"])
        share = next((one["share"] for one in followed["kernels"]
                      if (one["layer"], one["kernel"], one["library"]) == name), None)  # fmt: skip
        if kernel["layer"] in LAYERS and share is not None and share > 0.9:
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
