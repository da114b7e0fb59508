"""The roofline: how near a layer comes to what this machine can do at most, and what bounds it.

A roof is a rate: of FP32 operations, or of bytes at a level of the memory hierarchy. A layer that does F operations and
moves B bytes at a level in a time t uses F / t of the one and B / t of the other; what it could attain at most is where
the first of these reaches its roof (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009; with a roof a level:
Ilic, Pratas, Sousa: Cache-aware Roofline Model, 2014).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hwprof.analysis.confidence import HIGH, LOW, MEDIUM
from hwprof.analysis.latency import Loads, latency
from hwprof.analysis.owners import own
from hwprof.run.peaks import DRAM, USUAL_PAGES, Peaks

if TYPE_CHECKING:
    import polars as pl

COMPUTE: Final = "compute"
LATENCY: Final = "latency"
WAITING: Final = "waiting"
OVERHEAD: Final = "overhead"
FRONT_END: Final = "front end"
BAD_SPECULATION: Final = "bad speculation"
NOT_KNOWN: Final = "not known"

MODELLED: Final = "modelled"
"""Bytes: what inputs, outputs and weights are; a layer may find them in a cache, or only pass them on."""

FLOAT32: Final = "float32"


class Arithmetic(NamedTuple):
    """A type of numbers that peaks are known of."""

    roof: str  # its name
    peak: str
    gemm: str


ARITHMETIC: Final[Mapping[str, Arithmetic]] = MappingProxyType(
    {FLOAT32: Arithmetic("FP32", "fp32", "gemm-fp32"), "bfloat16": Arithmetic("BF16", "bf16", "gemm-bf16")}
)
"""By what a layer's products multiply (``layers.product_type``)."""

LEVELS: Final = ("L1", "L2", "L3", DRAM)

NEAR: Final = 0.6
"""Of a roof: from here on it bounds."""

VERY_NEAR: Final = 0.75

WAITS: Final = 0.4
"""Of the elapsed time: a layer whose thread waits for so long is bounded by that."""

OVER: Final = 0.5
"""Of the elapsed time, in what is no work of the layer's own."""

OTHERS: Final = 0.2
"""Of the elapsed time: with more of it taken by others, a rate says nothing of the layer."""

STALLED: Final = 0.35
"""Of the pipeline's slots (top-down)."""

OVERHEADS: Final = ("layout", "page_faults", "allocation", "dispatch", "blocked")

MOST: Final = 1.15
"""Of a roof, that a figure of two passes may seem to reach: more is chance."""


class Roofs(NamedTuple):
    """Of so many threads: GFLOP/s, and GB/s of each level."""

    threads: int
    gflops: float
    gbytes: dict[str, float]
    gemm_gflops: float | None
    latency_ns: float | None = None  # of a load from DRAM, by one thread
    paged_latency_ns: float | None = None  # the same where its page has to be looked up too
    modelled_gbytes: float | None = None  # of DRAM, by bytes that are counted once, as STREAM and a layer's shapes do
    arithmetic: str = ARITHMETIC[FLOAT32].roof  # the roof of operations
    disturbed: bool = False  # others were in the way: each is too low, and nobody knows how much

    def rate(self, level: str, source: str) -> float | None:
        """The roof for bytes of this source: a store reads its line first, which shapes do not tell, and stores past
        the caches do not; torch's kernels have none of these."""
        if level == DRAM and source == MODELLED and self.modelled_gbytes is not None:
            return self.modelled_gbytes
        return self.gbytes.get(level)


class Traffic(NamedTuple):
    """Bytes a second at a level, and where the figure is from."""

    gbytes: float
    source: str  # measured, simulated, instrumented, modelled


class Point(NamedTuple):
    """A layer under its roofs."""

    gflops: float | None
    roof: str | None  # the nearest one: "FP32", "DRAM", …
    share_of_roof: float | None  # how near: attained over attainable
    attainable_gflops: float | None  # with the traffic that it has; None: without operations
    source: str | None  # of the bytes that the nearest roof is about
    share_of_gemm: float | None = None  # of what this machine's library does in a large product


class Bound(NamedTuple):
    """What a layer's time is bounded by."""

    name: str
    evidence: str
    confidence: str


def roofs_of(peaks: Peaks | None, threads: int, numbers: str = FLOAT32) -> Roofs | None:
    """Those of so many threads, at most of as many as there are cores; None where they were not measured. ``numbers``:
    what is multiplied. A level's is the best of reading and triads; that of operations the best of hwprof's loops and
    of the library's product: it may have units for it that loops of vectors do not use, and what it attained while
    others were in the way of the loops can be attained."""
    if peaks is None:
        return None
    threads = min(threads, max(peaks.threads, default=threads))  # more have no core of their own
    of_type = ARITHMETIC[numbers]
    flops, gemm = peaks.find(of_type.peak, threads), peaks.find(of_type.gemm, threads)
    if flops is None:
        return None
    gflops = max(flops.value, gemm.value if gemm is not None else 0.0)

    def best(level: str, *kinds: str) -> float | None:
        known = [peaks.find(what, threads, level) for what in kinds]
        return max((one.value for one in known if one is not None), default=None)

    rates = {level: best(level, "read", "triad", "triad-nt") for level in LEVELS}
    found = {level: rate for level, rate in rates.items() if rate is not None}
    latency_ns, usual_pages = peaks.find("latency", level=DRAM), peaks.find(USUAL_PAGES, level=DRAM)
    return Roofs(
        threads,
        gflops,
        found,
        gemm.value if gemm is not None else None,
        latency_ns.value if latency_ns is not None else None,
        usual_pages.value if usual_pages is not None else None,
        best(DRAM, "read", "triad"),
        of_type.roof,
        peaks.disturbed,
    )


def roofs_for(threads: float, of_all: Roofs, of_one: Roofs | None) -> Roofs:
    """Those of code that runs on so many of the workload's threads: as many times those of one, at most those of all;
    without those of one in proportion."""
    alone = of_one.gflops if of_one is not None else of_all.gflops / of_all.threads
    gbytes = {level: min(rate, threads * _of_one(rate, level, of_all, of_one)) for level, rate in of_all.gbytes.items()}
    gemm_of_all, gemm_of_one = of_all.gemm_gflops, of_one.gemm_gflops if of_one is not None else None
    gemm = None
    if gemm_of_all is not None:
        gemm = min(gemm_of_all, threads * (gemm_of_one or gemm_of_all / of_all.threads))
    modelled = of_all.modelled_gbytes
    if modelled is not None:
        alone_gbytes = of_one.modelled_gbytes if of_one is not None else None
        modelled = min(modelled, threads * (alone_gbytes or modelled / of_all.threads))
    return of_all._replace(
        gflops=min(of_all.gflops, threads * alone), gbytes=gbytes, gemm_gflops=gemm, modelled_gbytes=modelled
    )


def _of_one(rate: float, level: str, of_all: Roofs, of_one: Roofs | None) -> float:
    known = of_one.gbytes.get(level) if of_one is not None else None
    return known if known is not None else rate / of_all.threads


def traffic_of(row: Mapping[str, Any], gflops: float | None, *, dram_counted: bool = False) -> dict[str, Traffic]:
    """By level, from a layer's metrics, the best that the run has: measured, else simulated, else (DRAM) what must move
    at least. ``gflops``: its rate, which bytes an operation are made of; ``dram_counted``: whether the processor
    counted ``dram_gbytes``, which else are the cache model's."""
    found: dict[str, Traffic] = {}
    if row.get("requested_gbytes") is not None:
        found["L1"] = Traffic(row["requested_gbytes"], "instrumented")
    for level, metric in (("L2", "l2_intensity"), ("L3", "llc_intensity")):
        if gflops and row.get(metric):
            found[level] = Traffic(gflops / row[metric], "simulated")
    simulated = gflops / row["memory_intensity"] if gflops and row.get("memory_intensity") else None
    for value, source in (
        (row.get("uncore_dram_gbytes"), "measured"),
        (row.get("dram_gbytes") if dram_counted else None, "measured"),
        (simulated if simulated is not None else row.get("dram_gbytes"), "simulated"),
        (row.get("gbytes"), MODELLED),
    ):
        if value is not None:
            found[DRAM] = Traffic(value, source)
            break
    return found


def with_metrics(rows: pl.DataFrame, metrics: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Of each owner its row with its metrics (``LayerTables``)."""
    return {row["owner"]: row for row in rows.join(metrics, on="owner", how="left").iter_rows(named=True)}


def product_types(modules: pl.DataFrame) -> dict[str | None, str]:
    """What is multiplied, by module and by its own code (the table ``layers``), and by the whole (None); of those that
    multiply nothing none."""
    rows = modules.drop_nulls("product_type").unique("path", keep="first", maintain_order=True)
    found: dict[str | None, str] = {}
    for path, numbers in rows.select("path", "product_type").iter_rows():
        found[path] = found[own(path)] = numbers
    types = {one for numbers in found.values() for one in numbers.split(", ")}
    return found | ({None: ", ".join(sorted(types))} if types else {})


def level_of_most(layers: Iterable[tuple[float, Collection[str]]]) -> str | None:
    """By whose bytes layers can be compared: DRAM, where half of the time is of layers that have some there, else the
    level that most of the time has bytes of. ``layers``: of those with operations, time and levels; None: no bytes."""
    known = list(layers)
    times = {level: sum(time for time, levels in known if level in levels) for level in LEVELS}
    best = max(times, key=lambda level: times[level])
    if not times[best]:
        return None
    return DRAM if times[DRAM] >= OVER * max(times.values()) else best


def point(gflops: float | None, traffic: Mapping[str, Traffic], roofs: Roofs) -> Point:
    """``gflops``: of the layer, None where it has no operations that anybody counts; ``traffic`` by level."""
    used: dict[str, tuple[float, str | None]] = {}
    gemm = gflops / roofs.gemm_gflops if gflops and roofs.gemm_gflops else None
    if gflops:
        used[roofs.arithmetic] = (gflops / roofs.gflops, None)
    for level, one in traffic.items():
        rate = roofs.rate(level, one.source)
        share = one.gbytes / rate if rate is not None else None
        if share is not None and (one.source != MODELLED or share <= MOST):  # else it did not move from there at all
            used[level] = (share, one.source)
    if not used:
        return Point(gflops, None, None, None, None)
    roof = max(used, key=lambda name: used[name][0])
    share, source = used[roof]
    attainable = gflops / share if gflops and share > 0 else None
    return Point(gflops, roof, share, attainable, source, gemm)


def loads_of(
    traffic: Mapping[str, Traffic], roofs: Roofs, cpi: float | None, memory_slots: float | None, threads: float
) -> Loads | None:
    """Of a layer on so many ``threads``; None where nobody knows how many lines came from DRAM, or how long one takes.
    ``memory_slots``: the share of slots that waited for memory (top-down)."""
    moved, roof = traffic.get(DRAM), roofs.gbytes.get(DRAM)
    if moved is None or moved.source == MODELLED or roof is None or roofs.latency_ns is None:
        return None
    each, share, measured = moved.gbytes / threads, moved.gbytes / roof, moved.source == "measured"
    return Loads(each, roofs.latency_ns, share, cpi, memory_slots, measured, roofs.paged_latency_ns)


def bound(
    found: Point,
    budget: Mapping[str, float] | None,
    topdown: Mapping[str, float] | None = None,
    loads: Loads | None = None,
) -> Bound:
    """``budget``: shares of the elapsed time by part, None: not known; ``topdown``: shares of slots (``frontend``,
    ``bad_speculation``), where they were counted; ``loads``: from DRAM, where they are known."""
    parts = budget or {}
    others = parts.get("preempted", 0.0)
    if others >= OTHERS:
        return Bound(NOT_KNOWN, f"others had the processor for {others:.0%} of the time", LOW)
    waits, over = parts.get("waiting", 0.0), sum(parts.get(part, 0.0) for part in OVERHEADS)
    if waits >= WAITS:
        return Bound(WAITING, f"waiting for the team: {waits:.0%} of the time", HIGH if waits >= OVER else MEDIUM)
    if over >= OVER:
        most = max(OVERHEADS, key=lambda part: parts.get(part, 0.0))
        text = f"{over:.0%} of the time in no kernel of its own, most in {most.replace('_', ' ')}"
        return Bound(OVERHEAD, text, HIGH if over >= VERY_NEAR else MEDIUM)
    share, roof = found.share_of_roof, found.roof
    if share is not None and roof is not None:
        name = f"{roof} bandwidth" if roof in LEVELS else COMPUTE
        if share >= NEAR:
            return Bound(name, _evidence(found), _confidence(found))
        works = parts.get("compute", 1.0)
        if works >= 1 - OVER and NEAR <= share / works <= MOST:
            text = f"{_evidence(found)}; {share / works:.0%} while its own kernels run, {works:.0%} of the time"
            return Bound(name, text, MEDIUM)
        gemm = found.share_of_gemm or 0.0
        if gemm >= NEAR:  # the library's kernels may be far from the roof, and a layer can do no better with them
            return Bound(COMPUTE, f"{gemm:.0%} of the GEMM peak, {_evidence(found)}", MEDIUM)
    waited = latency(loads) if loads is not None else None
    if waited is not None:
        return Bound(LATENCY, *waited)
    for slots, name in (("frontend", FRONT_END), ("bad_speculation", BAD_SPECULATION)):
        if (topdown or {}).get(slots, 0.0) >= STALLED:
            return Bound(name, f"{(topdown or {})[slots]:.0%} of the pipeline's slots", MEDIUM)
    return Bound(NOT_KNOWN, _evidence(found) if roof is not None else "neither operations nor bytes are known", LOW)


def _evidence(found: Point) -> str:
    """``71% of the FP32 roof``, ``64% of the DRAM roof, bytes modelled``."""
    text = f"{found.share_of_roof:.0%} of the {found.roof} roof"
    return text if found.source is None else f"{text}, bytes {found.source}"


def _confidence(found: Point) -> str:
    """Of bytes that are a model's minimum nobody knows that they moved; more than a roof is a figure that is wrong."""
    if (found.share_of_roof or 0.0) > MOST:
        return LOW
    if found.source == MODELLED:
        return MEDIUM
    return HIGH if (found.share_of_roof or 0.0) >= VERY_NEAR else MEDIUM
