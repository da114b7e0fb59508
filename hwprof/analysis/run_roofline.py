"""The roofline of a run: what the model, and each layer, attains of the peaks measured here, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from hwprof.analysis.confidence import LOW
from hwprof.analysis.latency import STALLED_CPI
from hwprof.analysis.metrics import events_of
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.analysis.roofline import (
    ARITHMETIC,
    FLOAT32,
    NOT_KNOWN,
    Bound,
    Roofs,
    bound,
    loads_of,
    point,
    product_types,
    roofs_of,
    traffic_of,
    with_metrics,
)
from hwprof.run.peaks import why_no_loops
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis

DISTURBED: Final = 1.25
"""Times as long: a pass with samples is the slower one, if anything."""

SLOTS: Final = {
    "frontend": "topdown_frontend",
    "bad_speculation": "topdown_bad_speculation",
    "memory": "topdown_memory",
}
"""Metrics in percent of the pipeline's slots."""


class UnderRoofs(NamedTuple):
    """Of a layer, or of a module's own code; ``path`` None: of the inference. Rates in GFLOP/s and GB/s."""

    path: str | None
    time_ns: float | None  # median of an iteration
    share: float | None  # of the inference
    gflops: float | None  # counted, else analytic; None: no operations that anybody counts
    gflops_from: str | None  # "counted", "analytic"
    gbytes: dict[str, float]  # by level
    bytes_from: dict[str, str]  # measured, simulated, instrumented, modelled: by level
    intensity: dict[str, float]  # operational: FLOP/byte, by level
    roof: str | None  # the nearest one: "FP32", "BF16", or a level
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
    dram_latency_ns: float | None  # of a load, by one thread
    analytic_gflops: float | None  # of the inference: 2 x MACs over its time
    others_share: float | None  # of the processors, that others took while the peaks were measured; None: not known
    share_of_gemm: float | None  # of these
    images_per_s: float | None
    whole: UnderRoofs | None
    rows: list[UnderRoofs]  # longest first


UNLIKE: Final = 1.5
"""So many times as long as in the measure pass a layer has to be in the sampled one for its memory to be another."""

OF_MEMORY: Final = ("page_faults", "allocation")


def run_roofline(analysis: RunAnalysis) -> RunRoofline | Unavailable:
    """From the main pass, the samples' budget, and the run's peaks."""
    manifest = analysis.run.manifest
    workload, peaks = manifest.workload, manifest.peaks
    if analysis.main is None or workload is None:
        return Unavailable("no pass was completed")
    threads = workload.threads
    roofs = roofs_of(peaks, threads)
    if peaks is None or roofs is None:  # figures, which take long to make, are not asked for
        not_measured = f"this machine's peaks with {threads} threads were not measured"
        why = why_no_loops(peaks)
        if why is not None:
            return Unavailable(f"{not_measured}: {why.reason}", why.remedy)
        return Unavailable(not_measured, f"hwprof peaks --threads {threads}")
    assert analysis.figures is not None
    layers = analysis.figures.layers
    rows = with_metrics(layers.rows, layers.metrics)
    budgets, sampled = _budgets(analysis)
    counted = _dram_counted(analysis)
    by_type = {numbers: roofs_of(peaks, threads, numbers) for numbers in ARITHMETIC}
    types = product_types(analysis.modules)

    def under(owner: str, row: Mapping[str, Any]) -> UnderRoofs:
        numbers = types.get(None if owner == WHOLE else owner, FLOAT32)
        products = numbers, by_type.get(numbers)
        return _under(owner, row, roofs, products, budgets.get(owner), sampled.get(owner), dram_counted=counted)

    found = {owner: under(owner, row) for owner, row in rows.items()}
    of_whole = by_type.get(types.get(None, FLOAT32))
    gemm = of_whole.gemm_gflops if of_whole is not None and not peaks.disturbed else None
    order = sorted(rows, key=lambda owner: -(rows[owner]["time_median_ns"] or 0.0))
    analytic = rows.get(WHOLE, {}).get("gflops")
    rates = analysis.throughput
    return RunRoofline(
        threads=threads,
        measured=peaks.created,
        fp32_gflops=roofs.gflops,
        level_gbytes=roofs.gbytes,
        gemm_gflops=roofs.gemm_gflops,
        dram_latency_ns=roofs.latency_ns,
        analytic_gflops=analytic,
        share_of_gemm=analytic / gemm if analytic and gemm else None,
        others_share=peaks.others_share,
        images_per_s=None if isinstance(rates, Unavailable) else rates.inference_per_s,
        whole=found.get(WHOLE),
        rows=[found[owner] for owner in order if owner not in (WHOLE, UNATTRIBUTED) and rows[owner]["time_median_ns"]],
    )


def _under(
    owner: str,
    row: Mapping[str, Any],
    roofs: Roofs,
    products: tuple[str, Roofs | None],
    budget: dict[str, float] | None,
    sampled_ns: float | None,
    *,
    dram_counted: bool,
) -> UnderRoofs:
    """``products``: what it multiplies, and the roofs of that; None: nobody measured how fast the processor is."""
    numbers, of_type = products
    counted, analytic = row.get("counted_gflops"), row.get("gflops")
    gflops = counted if counted is not None else analytic
    traffic = traffic_of(row, gflops, dram_counted=dram_counted)
    found = point(gflops if of_type is not None else None, traffic, of_type or roofs)
    slots = {name: row[metric] / 100 for name, metric in SLOTS.items() if row.get(metric) is not None}
    loads = loads_of(traffic, roofs, row.get("cpi"), slots.get("memory"), _at_work(row, roofs.threads))
    spent = of_timed_calls(budget, row.get("time_median_ns"), sampled_ns)
    reason = _hinted(bound(found, spent, slots, loads), row, sampled_ns, loads_known=loads is not None)
    return UnderRoofs(
        path=None if owner == WHOLE else owner,
        time_ns=row.get("time_median_ns"),
        share=row.get("share"),
        gflops=gflops,
        gflops_from=None if gflops is None else "counted" if counted is not None else "analytic",
        gbytes={level: one.gbytes for level, one in traffic.items()},
        bytes_from={level: one.source for level, one in traffic.items()},
        intensity={level: gflops / one.gbytes for level, one in traffic.items() if gflops and one.gbytes},
        roof=found.roof,
        share_of_roof=found.share_of_roof,
        attainable_gflops=found.attainable_gflops,
        bound=reason.name,
        evidence=reason.evidence if of_type is not None else f"{reason.evidence}; no peak of {numbers}",
        confidence=LOW if roofs.disturbed else reason.confidence,
    )


def of_timed_calls(
    budget: Mapping[str, float] | None, time_ns: float | None, sampled_ns: float | None
) -> Mapping[str, float] | None:
    """The shares of a layer's time without its memory's, where it took ``sampled_ns`` in the pass that the samples are
    of, and ``time_ns`` without: page faults that do not fit into that are of the other pass, in which the allocator
    gave memory back. With them everything else is of a larger whole."""
    memory = sum((budget or {}).get(part, 0.0) for part in OF_MEMORY)
    if not budget or not time_ns or not sampled_ns or sampled_ns <= UNLIKE * time_ns or memory >= 1:
        return budget
    if sampled_ns * (1 - memory) > UNLIKE * time_ns:  # it is not memory that makes the difference
        return budget
    return {part: 0.0 if part in OF_MEMORY else share / (1 - memory) for part, share in budget.items()}


def _hinted(reason: Bound, row: Mapping[str, Any], sampled_ns: float | None, *, loads_known: bool) -> Bound:
    """Of a bound that is not known: whether the time is that of a disturbed pass (``sampled_ns``: of the same layer in
    the pass with samples), and what tells whether a core that mostly waits waits for loads."""
    if reason.name != NOT_KNOWN:
        return reason
    time_ns, cpi, hints = row.get("time_median_ns"), row.get("cpi"), [reason.evidence]
    if time_ns and sampled_ns and time_ns > DISTURBED * sampled_ns:
        hints.append(f"{time_ns / sampled_ns:.1f} times as long as where it was sampled: others disturbed it")
    if not loads_known and cpi is not None and cpi >= STALLED_CPI:
        hints.append(f"CPI {cpi:.3g}: --cache-model tells whether it waits for loads")
    return reason._replace(evidence="; ".join(hints))


def _at_work(row: Mapping[str, Any], threads: int) -> float:
    """How many threads like the calling one did a layer's work, by their instructions; where these are not known all of
    the workload's."""
    workers = row.get("worker_share")
    return float(threads) if workers is None or workers >= 100 else min(float(threads), 100 / (100 - workers))


def _dram_counted(analysis: RunAnalysis) -> bool:
    """Whether the processor counted what ``dram_gbytes`` is made of; the cache model simulates it."""
    made_of = {name for one in analysis.definitions if one.name == "dram_gbytes" for name in events_of(one)}
    if analysis.figures is None or not made_of:
        return False
    rows = analysis.figures.layers.counters.filter(pl.col("event").is_in(list(made_of)))
    return bool(rows.height) and set(rows["provenance"].unique()) == {"measured"}


def _budgets(analysis: RunAnalysis) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """By owner the shares of its parts, and the elapsed time in the pass that was sampled."""
    if analysis.time_budget is None or analysis.thread_times is None:
        return {}, {}
    from hwprof.analysis.time_budget import (
        awaited,
        nested,
        without_awaited,
    )  # it needs numpy, which a run without samples does not

    rows = without_awaited(nested(analysis.time_budget), awaited(analysis.thread_times))
    shares = {one["path"] or WHOLE: {part["part"]: part["share"] for part in one["parts"]} for one in rows}
    return shares, {one["path"] or WHOLE: float(one["elapsed_ns"]) for one in rows}
