"""What rules look at in a run's main pass, in which nobody looks: the times of layers, and of kernels by their part of
these; page faults of timed iterations."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from hwprof.analysis.iterations import select
from hwprof.analysis.owners import INFERENCE
from hwprof.run.peaks import NEW_PAGE

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


def layer_times(analysis: RunAnalysis) -> dict[str, float]:
    """By layer its share of the inference's time in the main pass: in the one that was sampled others watch too, and
    each takes longer by another factor. Means, as calls may differ."""
    assert analysis.figures is not None
    whole_ns = _inference_ns(analysis)
    layers = analysis.figures.layers.rows.drop_nulls(["owner", "time_mean_ns"])
    return {owner: ns / whole_ns for owner, ns in layers.select("owner", "time_mean_ns").iter_rows() if whole_ns}


def _inference_ns(analysis: RunAnalysis) -> float:
    """Of an iteration of the main pass, on average; 0: not known."""
    if analysis.figures is None:
        return 0.0
    rows = analysis.figures.stages.rows.filter(owner=INFERENCE).drop_nulls(["total_ns", "iterations"])
    return float((rows["total_ns"] / rows["iterations"]).sum() or 0)


def timed_faults(analysis: RunAnalysis) -> float | None:
    """The page faults of an iteration of the main pass: the median of those that give times; None: not known."""
    records = [one for one in analysis.main.iterations if not one.warmup] if analysis.main is not None else []
    timed = set(select(records).timed)
    known = [one.disturbance.page_faults for one in records if one.index in timed and one.disturbance is not None]
    faults = [one for one in known if one is not None]
    return float(statistics.median(faults)) if faults else None


def cost_of(faults: float | None, analysis: RunAnalysis) -> float | None:
    """Of the inference's time, at most, by what a page fault costs on this machine; None: not known."""
    peaks, whole_ns = analysis.run.manifest.peaks, _inference_ns(analysis)
    page = peaks.find(NEW_PAGE) if peaks is not None else None
    if faults is None or not whole_ns or (page is None and faults):
        return None
    return faults * page.value / whole_ns if page is not None else 0.0


def kernel_times(by_layer: pl.DataFrame, times: Mapping[str, float]) -> dict[int, float]:
    """By kernel, of the elapsed time: each layer's, by the kernel's part of its processor time without that of the
    team's waiting loop. ``by_layer``: as ``sampled.by_layer``; ``times``: by layer."""
    work = by_layer.filter(pl.col("domain") != "openmp", pl.col("layer").is_in(list(times))).drop_nulls("kernel")
    parts = work.with_columns(part=pl.col("cpu_ns") / pl.col("cpu_ns").sum().over("layer"))
    found: dict[int, float] = {}
    for layer, kernel, part in parts.select("layer", "kernel", "part").iter_rows():
        found[kernel] = found.get(kernel, 0.0) + times[layer] * part
    return found


def times_within(by_layer: pl.DataFrame, times: Mapping[str, float]) -> dict[int, float]:
    """By kernel, of the elapsed time, all of the layers that it was met in; none of one that was met elsewhere too:
    nobody knows how long that takes."""
    met = by_layer.drop_nulls("kernel").select("kernel", "layer").unique()
    found: dict[int, float] = {}
    elsewhere = set()
    for kernel, layer in met.iter_rows():
        if layer in times:
            found[kernel] = found.get(kernel, 0.0) + times[layer]
        else:
            elsewhere.add(kernel)
    return {kernel: min(1.0, time) for kernel, time in found.items() if kernel not in elsewhere}
