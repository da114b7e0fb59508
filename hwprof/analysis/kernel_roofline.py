"""What kernels and primitives attain of this machine's peaks, and what bounds them: code in the place of layers.

A sampled kernel has the processor time that samples found in it, and the operations and bytes that another pass counted
in the very same code by instrumentation: its rate is theirs over that time, on as many threads as it was met on. A
kernel that nothing was counted in is bounded as its layer is, where it takes nearly all of that. A primitive has the
operations of its problem and the time that oneDNN took. Of no other code a rate is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from hwprof.analysis import instrumented, roofline
from hwprof.analysis.confidence import LOW
from hwprof.analysis.kernel_cpi import KEYS
from hwprof.analysis.owners import WHOLE, is_rest
from hwprof.analysis.roofline import (
    ARITHMETIC,
    FLOAT32,
    MODELLED,
    Roofs,
    Traffic,
    bound,
    loads_of,
    point,
    product_types,
    roofs_for,
    roofs_of,
    traffic_of,
)
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.work_time import NOT_WORK
from hwprof.run.peaks import DRAM
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.instrumented_pass import InstrumentedPass
    from hwprof.analysis.run_analysis import RunAnalysis

NEARLY_ALL: Final = 0.9
"""Of a layer's processor time: a kernel with so much of it is what the layer is."""

TYPES: Final = {"f32": FLOAT32, "bf16": "bfloat16"}
"""As oneDNN names them."""

INPUTS: Final = ("src", "wei")
"""Of oneDNN's tensors, how those are named that are multiplied."""

COUNTED, ANALYTIC, OF_LAYER = "counted", "analytic", "layer"
"""Where operations are from: instrumented code, the primitive's problem, the layer."""


class CodeUnderRoofs(NamedTuple):
    """Of a kernel in a layer or in all layers, or of a primitive. Rates in GFLOP/s and GB/s, while it runs."""

    gflops: float | None
    gflops_from: str | None  # COUNTED, ANALYTIC, OF_LAYER
    threads: float  # on which it runs
    gbytes: dict[str, float]  # by level
    bytes_from: dict[str, str]  # measured, simulated, instrumented, modelled: by level
    intensity: dict[str, float]  # FLOP/byte, by level
    roof: str | None  # the nearest one
    share_of_roof: float | None
    bound: str
    evidence: str
    confidence: str


Key = tuple[str | None, str, str, str]
"""Of a kernel: layer (None: all leaf layers that its CPI is of), name, library, domain."""


def of_primitives(analysis: RunAnalysis, rows: Iterable[Mapping[str, Any]]) -> list[CodeUnderRoofs | None]:
    """Of each row of ``primitives.by_layer``."""
    peaks, threads = analysis.run.manifest.peaks, analysis.threads
    roofs = {name: roofs_of(peaks, threads, name) for name in ARITHMETIC} if threads is not None else {}
    return [of_primitive(row, roofs) for row in rows]


def of_primitive(row: Mapping[str, Any], roofs: Mapping[str, Roofs | None]) -> CodeUnderRoofs | None:
    """``row``: as ``primitives.by_layer`` has it; ``roofs``: by what is multiplied. None where it computes nothing that
    is known, or of a type that no peak is of."""
    of_type = roofs.get(_multiplied(row["data_types"]) or "")
    if not row["flops"] or not row["time_ns"] or of_type is None:
        return None
    traffic = {}
    if row["bytes"] is not None:
        traffic[DRAM] = Traffic(row["bytes"] / row["time_ns"], MODELLED)
    return _under(row["flops"] / row["time_ns"], ANALYTIC, traffic, of_type, of_type.threads, None)


def _multiplied(data_types: str) -> str | None:
    """``src:bf16 wei:bf16 dst:f32`` is a product of BF16: a bias and what comes out may be FP32."""
    types = dict(part.partition(":")[::2] for part in data_types.split())
    inputs = {kind for tensor, kind in types.items() if tensor.startswith(INPUTS)} or set(types.values())
    return TYPES.get(inputs.pop()) if len(inputs) == 1 else None


def of_kernels(analysis: RunAnalysis) -> dict[Key, CodeUnderRoofs]:
    """Of those that enough is known of."""
    manifest, threads = analysis.run.manifest, analysis.threads
    roofs = roofs_of(manifest.peaks, threads) if threads is not None else None
    if threads is None or roofs is None or analysis.sampled is None:
        return {}
    types = product_types(analysis.modules)
    by_type = {name: [roofs_of(manifest.peaks, number, name) for number in (threads, 1)] for name in ARITHMETIC}
    found = _of_their_layers(analysis, roofs)
    for row in _counted(analysis).iter_rows(named=True):
        of_all, of_one = by_type.get(types.get(row["layer"], FLOAT32), (None, None))
        known = _of_counted(row, of_all or roofs, of_one, comparable=of_all is not None)
        found[row["layer"], row["kernel"], row["library"], row["domain"]] = known
    return found


def _of_counted(row: dict[str, Any], of_all: Roofs, of_one: Roofs | None, *, comparable: bool) -> CodeUnderRoofs:
    """``comparable``: its operations are of the type that the roofs are of."""
    roofs = roofs_for(row["threads"], of_all, of_one)
    gflops = row.get("counted_gflops") if comparable else None
    traffic = traffic_of(row, row.get("counted_gflops"))
    return _under(gflops, COUNTED, traffic, roofs, row["threads"], row["cpi"])


def _under(
    gflops: float | None,
    gflops_from: str,
    traffic: Mapping[str, Traffic],
    roofs: Roofs,
    threads: float,
    cpi: float | None,
) -> CodeUnderRoofs:
    found = point(gflops, traffic, roofs)
    reason = bound(found, None, None, loads_of(traffic, roofs, cpi, None, threads))
    return CodeUnderRoofs(
        gflops=gflops,
        gflops_from=gflops_from if gflops is not None else None,
        threads=threads,
        gbytes={level: one.gbytes for level, one in traffic.items()},
        bytes_from={level: one.source for level, one in traffic.items()},
        intensity={level: gflops / one.gbytes for level, one in traffic.items() if gflops and one.gbytes},
        roof=found.roof,
        share_of_roof=found.share_of_roof,
        bound=reason.name,
        evidence=reason.evidence,
        confidence=LOW if roofs.disturbed else reason.confidence,
    )


def _counted(analysis: RunAnalysis) -> pl.DataFrame:
    """A row a kernel with a CPI by time: then its counts belong to its time. Its metrics, ``threads`` and ``cpi``."""
    by_time = analysis.kernel_cpi
    passes = {one.record.name: one for one in analysis.instrumented}
    if by_time is None or by_time.pass_name not in passes or analysis.sampled is None:
        return pl.DataFrame()
    counted, alike = passes[by_time.pass_name], by_time.by_time.alike
    timed = by_time.by_time.kernels.drop_nulls("cpi").select("layer", *KEYS, "cpi", "cycles").rename({"name": "kernel"})
    times = timed.with_columns(work_ns=pl.col("cycles") / by_time.clock.ghz)
    keys = list(instrumented.KERNEL_KEYS)
    times = times.join(_threads(analysis, alike), on=keys, how="left", nulls_equal=True)
    times = times.with_columns(time=pl.col("work_ns") / pl.col("threads"))
    tables = [_with_sums(part, times, alike) for part in counted.kernels.parts(times)]
    if not tables:
        return pl.DataFrame()
    table = pl.concat(tables).with_columns(pl.col("value") / counted.kernels.iterations)
    found = instrumented.kernel_metrics(table, counted.record.metrics, times.select(*keys, "time"), _by_kernel(counted))
    return times.select(*keys, "threads", "cpi").join(found.drop("cpi", strict=False), on=keys, nulls_equal=True)


def _with_sums(kernels: pl.DataFrame, times: pl.DataFrame, alike: pl.DataFrame) -> pl.DataFrame:
    """The counts of the kernels of ``times`` in leaf layers, and of each over those that its time in all is of
    (``alike``): what modules did themselves is in no such time. ``kernels``: a part of ``KernelCounts``."""
    own = times.filter(~is_rest(pl.col("layer")))  # of the whole it is null
    of_time = alike.filter(~is_rest(pl.col("layer")))["layer"].cast(kernels.schema["layer"], strict=False)
    keys = ["kernel", "library", "domain", "event"]
    sums = kernels.filter(pl.col("layer").is_in(of_time.implode())).group_by(keys).agg(pl.col("value").sum())
    whole = sums.with_columns(layer=pl.lit(None, kernels.schema["layer"]))
    wanted = ((kernels, own), (whole, times.filter(pl.col("layer").is_null())))
    found = (instrumented.of_those(rows, those) for rows, those in wanted)
    return pl.concat([rows.select("layer", *keys, "value") for rows in found])


def _by_kernel(counted: InstrumentedPass) -> set[str]:
    """The events of which a kernel without a row has none: those that others have a row of, and those that are 0 in
    all."""
    whole = counted.figures.counters.filter((pl.col("owner") == WHOLE) & (pl.col("value") == 0))
    return {*counted.kernels.events, *whole["event"]}


def _threads(analysis: RunAnalysis, alike: pl.DataFrame) -> pl.DataFrame:
    """On how many threads each kernel was met, in a layer and in all that are ``alike``: as many equal ones as its
    times on them are worth, (Σ t)² / Σ t²."""
    assert analysis.sampled is not None
    samples = analysis.sampled.inside.select(pl.col("layer").cast(pl.String), "kernel", "tid", "cpu_ns")
    names = analysis.sampled.kernels.select("library", "domain", name="name", number="kernel")
    worth = pl.col("cpu_ns").sum().cast(pl.Float64) ** 2 / (pl.col("cpu_ns").cast(pl.Float64) ** 2).sum()
    tables = []
    together = samples.join(alike, on="layer", how="semi").with_columns(layer=pl.lit(None, pl.String))
    for rows in (samples, together):
        by_thread = rows.group_by("layer", "kernel", "tid").agg(pl.col("cpu_ns").sum())
        tables.append(by_thread.filter(pl.col("cpu_ns") > 0).group_by("layer", "kernel").agg(threads=worth))
    named = pl.concat(tables).join(names, left_on="kernel", right_on="number", how="left")
    return named.select("layer", "library", "domain", "threads", kernel=pl.col("name").fill_null(instrumented.UNNAMED))


def _of_their_layers(analysis: RunAnalysis, roofs: Roofs) -> dict[Key, CodeUnderRoofs]:
    """Of kernels that take nearly all of a layer that has a known bound other than waiting and overhead."""
    under = analysis.roofline
    assert analysis.sampled is not None
    if isinstance(under, Unavailable):
        return {}
    layers = {one.path: one for one in under.rows}
    most = (pl.col("share") >= NEARLY_ALL) & (pl.col("samples") >= FEW_SAMPLES) & ~pl.col("domain").is_in(NOT_WORK)
    rows = analysis.sampled.by_layer.filter(most).drop_nulls(list(KEYS))
    found = {}
    for layer, *key in rows.select("layer", *KEYS).iter_rows():
        one = layers.get(layer)
        if one is None or one.bound in (roofline.NOT_KNOWN, roofline.WAITING, roofline.OVERHEAD):
            continue
        found[layer, key[0], key[1], key[2]] = CodeUnderRoofs(
            one.gflops, OF_LAYER, float(roofs.threads), one.gbytes, one.bytes_from, one.intensity, one.roof,
            one.share_of_roof, one.bound, f"{NEARLY_ALL:.0%} of its layer or more: {one.evidence}", one.confidence,
        )  # fmt: skip
    return found
