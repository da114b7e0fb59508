"""How near the model, and each layer, comes to what this machine can do at most, and what bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.roofline import Roofs
    from hwprof.analysis.run_analysis import RunAnalysis


class UnderRoofs(msgspec.Struct, kw_only=True, frozen=True):
    """Of a layer, or of a module's own code; ``path`` null: of the inference."""

    path: str | None
    gflops: float | None  # counted, else analytic; null: no operations that anybody counts
    gflops_from: str | None  # "counted", "analytic"
    gbytes: dict[str, float]  # GB/s by level
    bytes_from: dict[str, str]  # measured, simulated, instrumented, modelled: by level
    roof: str | None  # the nearest one: "FP32", or a level
    share_of_roof: float | None
    attainable_gflops: float | None
    bound: str
    evidence: str
    confidence: str  # high, medium, low


class Roofline(Part, kw_only=True, frozen=True):
    """By the peaks that ``hwprof peaks`` measured, for as many threads as the workload has."""

    threads: int
    measured: str  # when, ISO 8601
    fp32_gflops: float
    level_gbytes: dict[str, float]
    gemm_gflops: float | None
    share_of_gemm: float | None  # of the inference's analytic operations
    images_per_s: float | None
    whole: UnderRoofs | None
    rows: list[UnderRoofs]  # longest first


PART: Final = Roofline


def build(analysis: RunAnalysis) -> Roofline | Unavailable:
    """From the main pass, the samples' budget, and the run's peaks."""
    from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
    from hwprof.analysis.roofline import roofs_of, with_metrics

    manifest = analysis.run.manifest
    if analysis.figures is None or manifest.workload is None:
        return Unavailable("no pass was completed")
    threads = manifest.workload.threads
    roofs = roofs_of(manifest.peaks, threads)
    if manifest.peaks is None or roofs is None:
        return Unavailable(
            f"this machine's peaks with {threads} threads were not measured", f"hwprof peaks --threads {threads}"
        )
    layers = analysis.figures.layers
    rows = with_metrics(layers.rows, layers.metrics)
    budgets = _budgets(analysis)
    found = {owner: _under(owner, row, roofs, budgets.get(owner)) for owner, row in rows.items()}
    order = sorted(rows, key=lambda owner: -(rows[owner]["time_median_ns"] or 0.0))
    whole, time_ns = found.get(WHOLE), rows.get(WHOLE, {}).get("time_median_ns")
    analytic = rows.get(WHOLE, {}).get("gflops")
    images = len(manifest.workload.sources)
    return Roofline(
        threads=threads,
        measured=manifest.peaks.created,
        fp32_gflops=roofs.gflops,
        level_gbytes=roofs.gbytes,
        gemm_gflops=roofs.gemm_gflops,
        share_of_gemm=analytic / roofs.gemm_gflops if analytic and roofs.gemm_gflops else None,
        images_per_s=images / time_ns * 1e9 if images and time_ns else None,
        whole=whole,
        rows=[found[owner] for owner in order if owner not in (WHOLE, UNATTRIBUTED) and rows[owner]["time_median_ns"]],
    )


def _under(owner: str, row: dict[str, Any], roofs: Roofs, budget: dict[str, float] | None) -> UnderRoofs:
    from hwprof.analysis.owners import WHOLE
    from hwprof.analysis.roofline import bound, point, traffic_of

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
    from hwprof.analysis.owners import WHOLE
    from hwprof.analysis.time_budget import nested

    if analysis.time_budget is None:
        return {}
    rows = nested(analysis.time_budget)
    return {one["path"] or WHOLE: {part["part"]: part["share"] for part in one["parts"]} for one in rows}
