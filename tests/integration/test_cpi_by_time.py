"""CPI without hardware counters, where operators are recorded inside of a layer, and where one goes by the clock."""

from __future__ import annotations

import json
import platform
from typing import Any

import pytest

from hwprof.analysis import no_cpi
from tests.support.command import TESTS_MODELS, collect, hwprof_here
from tests.support.requirements import require_module, require_sampler

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64"),
]

COMMAND = (
    *("--model", "tests.support.models.small_operators:factory", "--threads", "1", "--iterations", "6"),
    *("--collectors", "perf,sampler,torch_profiler,core_clock,instrumented", "--frequency", "1999"),
)
ADDITIONS, LOOP = "0", "1"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    require_module("torch")
    require_module("frida")
    require_sampler()
    run = collect(tmp_path_factory.mktemp("cpi"), *COMMAND, environment=TESTS_MODELS)
    found: dict[str, Any] = json.loads(hwprof_here("report", str(run.path), "--format", "json").stdout)
    if found["kernels"]["cpi_provenance"] != "instrumented":
        pytest.skip("hardware counts cycles here")
    return found


def sampled(report: dict[str, Any], path: str) -> dict[str, Any]:
    (found,) = [layer for layer in report["kernels"]["layers"] if layer["path"] == path]
    return dict(found)


def test_a_layer_has_no_more_cycles_than_it_took_without_the_recorder(report: dict[str, Any]) -> None:
    """Both figures are of the same counters: no chance is between them."""
    (layer,) = [one for one in report["layers"]["rows"] if one["path"] == ADDITIONS]
    kernels, found = report["kernels"], sampled(report, ADDITIONS)
    ghz = kernels["core_ghz"] or kernels["reference_ghz"]
    counters = report["layers"]["counters"]
    place = counters["of"].index(ADDITIONS)
    instructions = sum(
        column["value"][place] for name, column in counters["events"].items() if name.endswith(".instructions")
    )
    clock = counters["events"]["task-clock"]["main"][place]
    most = clock * ghz / instructions
    assert "cpi" in found, found["cpi_missing"]
    assert layer["metrics"]["cpi"] == pytest.approx(found["cpi"])
    assert found["cpi"] <= most * 1.02, "waiting in the OpenMP runtime is not among its instructions"
    assert found["cpu_ns"] > 1.2 * clock, "else this shows nothing"


def test_a_layer_that_goes_by_the_clock_has_none(report: dict[str, Any]) -> None:
    found = sampled(report, LOOP)
    assert (found.get("cpi"), found["cpi_missing"]) == (None, no_cpi.CLOCKED)


def test_each_sampled_row_has_a_cpi_or_a_reason(report: dict[str, Any]) -> None:
    rows = [*report["kernels"]["layers"], *(one for one in report["kernels"]["kernels"] if one.get("waits") is None)]
    assert [row for row in rows if ("cpi" in row) is ("cpi_missing" in row)] == []
