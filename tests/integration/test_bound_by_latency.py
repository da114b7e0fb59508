"""Loads that wait for DRAM, without a PMU: by the cache model's misses and the peaks' latency."""

from __future__ import annotations

import json
import platform
from typing import Any

import pytest

from hwprof.analysis.latency import STALLED_CPI
from tests.support.command import TESTS_MODELS, hwprof
from tests.support.requirements import require_module

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="code is followed on x86-64"),
    pytest.mark.alone,
]

MODEL = ("--model", "tests.support.models.dependent_loads:factory", "--threads", "1", "--iterations", "12")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    require_module("torch")
    folder = tmp_path_factory.mktemp("latency")
    environment = {**TESTS_MODELS, "XDG_CACHE_HOME": str(folder / "cache")}
    options = ("--counters", "instrumented", "--cache-model", "--no-pyspy", "--peaks")
    done = hwprof("collect", *MODEL, *options, cwd=folder, environment=environment)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(hwprof("report", "--format", "json", cwd=folder).stdout))


@pytest.fixture
def rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Layers below the roofs, by path."""
    return {one["path"]: one for one in document["roofline"]["rows"]}


def test_a_chase_of_pointers_is_bounded_by_latency(rows: dict[str, dict[str, Any]]) -> None:
    chased = rows["chased"]
    assert (chased["bound"], chased["confidence"]) == ("latency", "medium"), chased
    assert "lines from DRAM in flight" in chased["evidence"] and "simulated" in chased["evidence"]


def test_random_loads_that_need_nothing_of_one_another_are_less_sure(
    document: dict[str, Any], rows: dict[str, dict[str, Any]]
) -> None:
    gathered = rows["gathered"]
    layer = next(one for one in document["layers"]["rows"] if one["path"] == "gathered")
    stalled = layer["metrics"].get("cpi", 0.0) >= STALLED_CPI  # some 2.8 where all is quiet
    assert (gathered["bound"], gathered["confidence"]) == ("latency" if stalled else "not known", "low"), gathered


def test_so_is_the_kernel_of_the_chase(document: dict[str, Any]) -> None:
    known = [one for one in document["kernels"]["kernels"] if one["kernel"] == "chase" and one["layer"] == "chased"]
    assert [one["roofline"]["bound"] for one in known] == ["latency"], known


def test_neither_products_nor_a_sum_of_long_arrays_are(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["products.inner"]["bound"] == "compute", rows["products.inner"]
    assert rows["streamed"]["bound"] in ("DRAM bandwidth", "not known"), "not known: others used the memory too"
