"""The roofline of a run: what the model, and each layer, attains of the peaks measured here, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.analysis.roofline import Roofs, bound, point, roofs_of, traffic_of, with_metrics
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class UnderRoofs(NamedTuple):
    """Of a layer, or of a module's own code; ``path`` None: of the inference. Rates in GFLOP/s and GB/s."""

    path: str | None
    gflops: float | None  # counted, else analytic; None: no operations that anybody counts
    gflops_from: str | None  # "counted", "analytic"
    gbytes: dict[str, float]  # by level
    bytes_from: dict[str, str]  # measured, simulated, instrumented, modelled: by level
    roof: str | None  # the nearest one: "FP32", or a level
    share_of_roof: float | None
    attainable_gflops: float | None
    bound: str
    evidence: str
    confidence: str  # high, medium, low


class RunRoofline(NamedTuple):
    """By the peaks for as many threads as the workload has."""

    threads: int
    measured: str  # when, ISO 8601
    fp32_gflops: float
    level_gbytes: dict[str, float]
    gemm_gflops: float | None
    share_of_gemm: float | None  # of the inference's analytic operations
    images_per_s: float | None
    whole: UnderRoofs | None
    rows: list[UnderRoofs]  # longest first


def run_roofline(analysis: RunAnalysis) -> RunRoofline | Unavailable:
    """From the main pass, the samples' budget, and the run's peaks."""
    manifest = analysis.run.manifest
    workload, peaks = manifest.workload, manifest.peaks
    if analysis.main is None or workload is None:
        return Unavailable("no pass was completed")
    threads = workload.threads
    roofs = roofs_of(peaks, threads)
    if peaks is None or roofs is None:  # figures, which take long to make, are not asked for
        return Unavailable(
            f"this machine's peaks with {threads} threads were not measured", f"hwprof peaks --threads {threads}"
        )
    assert analysis.figures is not None
    layers = analysis.figures.layers
    rows = with_metrics(layers.rows, layers.metrics)
    budgets = _budgets(analysis)
    found = {owner: _under(owner, row, roofs, budgets.get(owner)) for owner, row in rows.items()}
    order = sorted(rows, key=lambda owner: -(rows[owner]["time_median_ns"] or 0.0))
    time_ns = rows.get(WHOLE, {}).get("time_median_ns")
    analytic = rows.get(WHOLE, {}).get("gflops")
    images = len(workload.sources)
    return RunRoofline(
        threads=threads,
        measured=peaks.created,
        fp32_gflops=roofs.gflops,
        level_gbytes=roofs.gbytes,
        gemm_gflops=roofs.gemm_gflops,
        share_of_gemm=analytic / roofs.gemm_gflops if analytic and roofs.gemm_gflops else None,
        images_per_s=images / time_ns * 1e9 if images and time_ns else None,
        whole=found.get(WHOLE),
        rows=[found[owner] for owner in order if owner not in (WHOLE, UNATTRIBUTED) and rows[owner]["time_median_ns"]],
    )


def _under(owner: str, row: Mapping[str, Any], roofs: Roofs, budget: dict[str, float] | None) -> UnderRoofs:
    counted, analytic = row.get("counted_gflops"), row.get("gflops")
    gflops = counted if counted is not None else analytic
    traffic = traffic_of(row, gflops)
    found = point(gflops, traffic, roofs)
    names = {"frontend": "topdown_frontend", "bad_speculation": "topdown_bad_speculation"}
    slots = {name: row[metric] / 100 for name, metric in names.items() if row.get(metric) is not None}
    reason = bound(found, budget, slots)
    return UnderRoofs(
        path=None if owner == WHOLE else owner,
        gflops=gflops,
        gflops_from=None if gflops is None else "counted" if counted is not None else "analytic",
        gbytes={level: one.gbytes for level, one in traffic.items()},
        bytes_from={level: one.source for level, one in traffic.items()},
        roof=found.roof,
        share_of_roof=found.share_of_roof,
        attainable_gflops=found.attainable_gflops,
        bound=reason.name,
        evidence=reason.evidence,
        confidence=reason.confidence,
    )


def _budgets(analysis: RunAnalysis) -> dict[str, dict[str, float]]:
    if analysis.time_budget is None:
        return {}
    from hwprof.analysis.time_budget import nested  # it needs numpy, which a run without samples does not

    rows = nested(analysis.time_budget)
    return {one["path"] or WHOLE: {part["part"]: part["share"] for part in one["parts"]} for one in rows}
