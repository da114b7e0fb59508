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
from hwprof.analysis.owners import INFERENCE, ROOT
from hwprof.analysis.roofline import Roofs, roofs_for, roofs_of
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.analysis.run_roofline import UnderRoofs
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.schema import conform
from hwprof.unavailable import Unavailable
from tests.support import synthetic_variants as runs
from tests.support.machine_peaks import ZEN, peak
from tests.support.synthetic_samples import JIT, MAIN
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


CONVOLUTION = (None, "jit_conv_fwd", "jit", "jit")


def with_own_code(run: RunDirectory) -> None:
    """``model.0`` does nine times the work of its convolution itself, before its activation, on the calling thread."""
    root = pl.lit(ROOT).alias("path"), pl.lit(False).alias("leaf"), pl.lit(0, pl.Int64).alias("macs")
    modules = run.read("layers")
    write_table(run.path / "layers.parquet", "layers", pl.concat([modules.head(1).with_columns(root), modules]))
    spans, samples = run.read("spans"), run.read("samples")
    ends = spans.filter((pl.col("pass") == "trace") & (pl.col("path") == "model.0.conv"))["end_ns"]
    first = samples.filter((pl.col("kernel") == JIT) & (pl.col("tid") == MAIN)).head(1)
    longer = [first.with_columns(time_ns=end + 1) for end in ends for _ in range(40)]
    write_table(run.path / "samples.parquet", "samples", pl.concat([samples, *longer]).sort("time_ns"))
    spans = spans.filter(pl.col("pass") == "instrumented").select("span", "path")
    counts = run.read("kernel_counts").join(spans, on="span")
    done = counts.filter((pl.col("path") == "model.0.conv") & (pl.col("kernel") == JIT))
    done = done.with_columns(pl.col("value") * 9)
    (whole,) = spans.filter(path=INFERENCE)["span"]
    rows = [counts, done.with_columns(span=pl.lit(whole, pl.Int64))]
    for span, path in spans.filter(pl.col("path").is_in(["model.0", "model.1", "model.1.cv1"])).iter_rows():
        inside = [counts.filter(pl.col("path").str.starts_with(f"{path}.")), *([done] if path == "model.0" else [])]
        rows += [frame.with_columns(span=pl.lit(span, pl.Int64)) for frame in inside]
    keys = [name for name in counts.columns if name not in ("value", "path")]
    sums = pl.concat([frame.select(*keys, "value") for frame in rows]).group_by(keys).agg(pl.col("value").sum())
    write_table(run.path / "kernel_counts.parquet", "kernel_counts", conform("kernel_counts", sums))


def test_in_all_a_kernel_has_neither_counts_nor_time_of_own_code(tmp_path: Path) -> None:
    run = runs.kernels_under_roofs(tmp_path)
    before = of_kernels(RunAnalysis(run))[CONVOLUTION]
    with_own_code(run)
    analysis = RunAnalysis(run)
    (counted,) = analysis.instrumented
    of_code = counted.of_listed.filter(kernel="jit_conv_fwd", event=runs.FLOPS)
    own, whole = (of_code.filter(pl.col("layer").eq_missing(layer))["value"][0] for layer in ("model.0 (own)", None))
    assert (own, whole) == (9 * EACH[JIT] * FLOPS_EACH, 11 * EACH[JIT] * FLOPS_EACH)
    assert analysis.sampled is not None and "model.0 (own)" in analysis.sampled.by_layer["layer"].to_list()
    after = of_kernels(analysis)
    assert "model.0 (own)" not in {layer for layer, *_ in after}
    assert after[CONVOLUTION] == before, "operations, bytes, time and threads"
    assert before.gflops is not None and 0 < before.gflops < 2 * FLOPS_EACH * EACH[JIT]
    each = [one for key, one in after.items() if key[0] is not None and key[1:] == CONVOLUTION[1:]]
    rates = sorted(one.gflops for one in each if one.gflops is not None)
    assert len(rates) == 2 and rates[0] <= (after[CONVOLUTION].gflops or 0.0) <= rates[1]


def test_in_all_a_kernel_has_no_counts_of_layers_that_did_other_work(tmp_path: Path) -> None:
    """The instrumented pass executed next to none of one convolution's instructions: its time is in no sum."""
    run = runs.kernels_under_roofs(tmp_path)
    (span,) = run.read("spans").filter((pl.col("pass") == "instrumented") & (pl.col("path") == "model.0.conv"))["span"]
    few = (pl.col("span") == span) & (pl.col("event") == runs.INSTRUCTIONS)
    runs.change_table(run, "kernel_counts", pl.when(few).then(100).otherwise("value").alias("value"))
    found = of_kernels(RunAnalysis(run))
    (other,) = [one for key, one in found.items() if key[0] is not None and key[1:] == CONVOLUTION[1:]]
    assert found[CONVOLUTION] == other


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
