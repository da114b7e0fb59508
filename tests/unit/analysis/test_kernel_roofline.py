"""What kernels and primitives attain, and what bounds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis import kernel_roofline
from hwprof.analysis.kernel_roofline import of_kernels, of_primitive
from hwprof.analysis.roofline import Roofs, roofs_for, roofs_of
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.analysis.run_roofline import UnderRoofs
from hwprof.run.directory import RunDirectory
from hwprof.unavailable import Unavailable
from tests.support import synthetic_variants as runs
from tests.support.machine_peaks import ZEN, peak
from tests.support.synthetic_samples import JIT
from tests.support.synthetic_variants import BYTES_EACH, EACH, FLOPS_EACH

OF_ALL = Roofs(2, 520.0, {"L1": 1180.0, "DRAM": 108.0}, 200.0, 128.0)
ROOFS = {"float32": OF_ALL, "bfloat16": None}


def primitive(**changed: Any) -> dict[str, Any]:
    types = "src:f32 wei:f32 bia:f32 dst:f32"
    return {"flops": 4e8, "bytes": 4e6, "time_ns": 1_000_000, "data_types": types} | changed


def test_a_primitive_has_the_operations_of_its_problem_and_onednns_time() -> None:
    found = of_primitive(primitive(), ROOFS)
    assert found is not None
    assert (found.gflops, found.gflops_from, found.gbytes, found.bytes_from) == (
        400.0, "analytic", {"DRAM": 4.0}, {"DRAM": "modelled"},
    )  # fmt: skip
    assert (found.bound, found.confidence, found.share_of_roof) == ("compute", "high", 400 / 520)
    assert found.intensity == {"DRAM": 100.0}


@pytest.mark.parametrize(
    "changed",
    [
        {"flops": None},
        {"flops": 0.0},
        {"time_ns": 0},
        {"data_types": "src:bf16 wei:bf16 dst:bf16"},
        {"data_types": "src:f32 wei:bf16 dst:f32"},
    ],
)
def test_of_other_primitives_nothing_is_said(changed: dict[str, Any]) -> None:
    assert of_primitive(primitive(**changed), ROOFS) is None


def test_a_primitive_of_bf16_has_the_roof_of_that() -> None:
    roofs = ROOFS | {"bfloat16": OF_ALL._replace(gflops=1000.0, arithmetic="BF16")}
    found = of_primitive(primitive(flops=9e8, data_types="src:bf16 wei:bf16 bia:f32 dst:f32"), roofs)
    assert found is not None and (found.roof, found.share_of_roof, found.bound) == ("BF16", 0.9, "compute")


def test_a_primitive_with_many_bytes_is_bounded_by_dram() -> None:
    found = of_primitive(primitive(flops=1e7, bytes=9e7), ROOFS)
    assert found is not None and (found.bound, found.confidence) == ("DRAM bandwidth", "medium")


def test_roofs_of_some_of_the_threads() -> None:
    of_all, of_one = roofs_of(ZEN, 2), roofs_of(ZEN, 1)
    assert of_all is not None and of_one is not None
    assert roofs_for(1.0, of_all, of_one)[1:4] == of_one[1:4]
    assert roofs_for(2.0, of_all, of_one) == of_all
    assert roofs_for(1.5, of_all, of_one).gflops == 390.0
    shared = of_all._replace(gbytes={"DRAM": 60.0})  # two threads have little more than one
    assert roofs_for(1.5, shared, of_one._replace(gbytes={"DRAM": 54.0})).gbytes == {"DRAM": 60.0}
    assert roofs_for(1.0, of_all, None).gflops == 260.0, "in proportion"


@given(st.floats(1.0, 64.0), st.floats(1.0, 1e4), st.floats(1.0, 1e4))
def test_some_of_the_threads_have_no_more_than_all(threads: float, one: float, every: float) -> None:
    found = roofs_for(threads, Roofs(64, every, {"DRAM": every}, every), Roofs(1, one, {"DRAM": one}, one))
    assert found.gflops <= every and found.gbytes["DRAM"] <= every and (found.gemm_gflops or 0) <= every


def test_a_sampled_kernel_has_the_counts_of_the_same_code_over_its_time(tmp_path: Path) -> None:
    analysis = RunAnalysis(runs.kernels_under_roofs(tmp_path))
    assert analysis.kernel_cpi is not None
    found = of_kernels(analysis)
    times = {
        (row["layer"], row["name"]): row["cycles"] / analysis.kernel_cpi.clock.ghz
        for row in analysis.kernel_cpi.by_time.kernels.drop_nulls("cpi").to_dicts()
    }
    assert found and {(layer, kernel) for layer, kernel, _, _ in found} == set(times)
    convolutions = {key: one for key, one in found.items() if key[3] == "jit" and key[0] is not None}
    assert len(convolutions) == 2
    for (layer, kernel, *_), one in convolutions.items():
        work_ns = times[layer, kernel]
        assert one.threads == pytest.approx(1.8, rel=0.05), "one thread all of the time, another one for half of it"
        assert one.gflops == pytest.approx(EACH[JIT] * FLOPS_EACH / (work_ns / one.threads))
        assert one.gbytes["L1"] == pytest.approx(EACH[JIT] * BYTES_EACH / (work_ns / one.threads))
        assert (one.gflops_from, one.bytes_from["L1"]) == ("counted", "instrumented")
        assert one.gflops is not None and one.roof == "FP32"
        assert one.share_of_roof == pytest.approx(one.gflops / (260 * one.threads))


def test_of_operations_that_were_not_counted_nothing_is_said(tmp_path: Path) -> None:
    run = runs.kernels_under_roofs(tmp_path)
    runs.change_table(run, "kernel_counts", None, pl.col("event") != runs.FLOPS)
    found = of_kernels(RunAnalysis(run)).values()
    assert found and all(
        (one.gflops, one.gflops_from, one.roof, one.intensity) == (None, None, "L1", {}) for one in found
    )


def test_without_peaks_or_samples_there_are_none(tmp_path: Path) -> None:
    run = runs.kernels_under_roofs(tmp_path / "peaks")
    run.manifest.peaks = None
    assert of_kernels(RunAnalysis(run)) == {}
    assert of_kernels(RunAnalysis(runs.under_roofs(tmp_path / "samples"))) == {}


ACT = "model.0.act"


@pytest.mark.parametrize(("roof", "bound"), [(1.2, "DRAM bandwidth"), (20.0, None)])
def test_a_kernel_that_is_nearly_all_of_a_layer_is_bounded_as_it_is(
    roof: float, bound: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples with counters, and no pass that counted operations; ``roof``: over what the layer moves at least."""
    run = runs.sampled(tmp_path)
    run.manifest.peaks = ZEN
    moved = under(run, ACT).gbytes["DRAM"]
    peaks = [one for one in ZEN.peaks if one.level != "DRAM"] + [peak("read", 2, moved * roof, "DRAM")]
    run.manifest.peaks = msgspec.structs.replace(ZEN, peaks=peaks)
    assert not [key for key in of_kernels(RunAnalysis(run)) if key[0] == ACT], "three samples are too few"
    monkeypatch.setattr(kernel_roofline, "FEW_SAMPLES", 3)
    found = {key: one for key, one in of_kernels(RunAnalysis(run)).items() if key[0] == ACT}
    assert [one.bound for one in found.values()] == ([bound] if bound is not None else [])
    for one in found.values():
        assert one.gflops_from == "layer" and one.evidence.startswith("90% of its layer or more: 83% of the DRAM roof")


def under(run: RunDirectory, layer: str) -> UnderRoofs:
    found = RunAnalysis(run).roofline
    assert not isinstance(found, Unavailable)
    return next(one for one in found.rows if one.path == layer)
