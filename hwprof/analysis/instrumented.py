"""Instrumented passes: their counts, joined with the times of the same work uninstrumented.

An instrumented worker is slow, so its own times mean nothing. Counts are its, times its companion's; the two did the
same work only if they were given the same threads and the same environment, which is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from hwprof.analysis import irregular, summary, uncounted
from hwprof.analysis.attribution import Attribution, owned_counts
from hwprof.analysis.iterations import Iterations
from hwprof.analysis.large_tables import some_at_a_time
from hwprof.analysis.metrics import operands_of, values
from hwprof.analysis.owners import UNATTRIBUTED, is_leaf
from hwprof.run.manifest import MetricDefinition, PassRecord

SMALL: Final = 0.001
"""Kernels with a smaller share of the instructions are left to the table of all."""

KERNELS_SCHEMA: Final = pl.Schema(
    {
        "layer": pl.String,
        "kernel": pl.String,
        "library": pl.String,
        "domain": pl.String,
        "event": pl.String,
        "provenance": pl.String,
        "value": pl.Float64,
    }
)

KERNEL_KEYS: Final = ("layer", "kernel", "library", "domain")
"""What tells kernels apart: one in each layer, and one (``layer`` null) in the whole."""

UNNAMED: Final = "(unnamed)"
"""The kernel that stands for all of a library that has no names."""


def why_not_comparable(instrumented: PassRecord, companion: PassRecord | None) -> str | None:
    """Why the times cannot be joined with the counts; None where they can."""
    if companion is None:
        return f"time not available: pass {instrumented.times_from} was not completed"
    differing = [
        name for name, mine in instrumented.fingerprint.items() if companion.fingerprint.get(name, mine) != mine
    ]
    if differing:
        return f"time not comparable: pass {companion.name} differs in {' and '.join(differing)}"
    return None


def belonging(records: Iterable[PassRecord], timed: PassRecord) -> PassRecord | None:
    """The pass that counted the very code whose times ``timed`` took: the same work, with the machine's own
    instruction set; None where there is none."""
    return next((record for record in same_code(records, timed) if record.times_from == timed.name), None)


def same_code(records: Iterable[PassRecord], other: PassRecord) -> list[PassRecord]:
    """The passes that instrumented the very code that ``other`` ran too, whatever pass their times are from."""
    return [
        record
        for record in records
        if record.times_from is not None
        and record.instruction_set is None
        and why_not_comparable(record, other) is None
    ]


def by_call(spans: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """Operands of single layer calls: ``path, call`` and a column an operand (``EVENT``, ``EVENT@main``, …), of the
    last iteration that counted them. ``spans`` and ``counts`` are the instrumented pass's."""
    layers = spans.filter(pl.col("kind") == "layer").join(counts.select("span").unique(), on="span", how="semi")
    latest = layers.sort("iteration").unique(["path", "call"], keep="last")
    parts = [_operands_by_call(spans, of_spans) for spans, of_spans in some_at_a_time(latest, counts)]
    return pl.concat(parts, how="diagonal")


def _operands_by_call(spans: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    owners = spans.select("span", "path", "call", owner=pl.col("span").cast(pl.String), caller="tid")
    counted, _ = uncounted.hide(owned_counts(owners.select("span", "owner", "caller"), counts, None))
    operands = summary.by_name(counted)
    return owners.select("path", "call", "owner").join(operands, on="owner", how="inner").drop("owner", "iteration")


def whole_layers(counted: Attribution, timed: Attribution) -> Attribution:
    """Of a pass that was interrupted: the counts of the layers that came to all of their calls, and no sums."""
    calls = [
        found.times.group_by("owner").agg(pl.col("calls").max(), pl.col("iteration").max())
        for found in (counted, timed)
    ]
    whole = calls[0].join(calls[1], on=["owner", "calls"], how="semi")
    last = counted.iterations.counted[-1:]
    mine = pl.col("iteration").is_in(list(last)) & is_leaf(pl.col("owner"))
    counts = counted.counts.filter(mine).join(whole, on="owner", how="semi")
    return replace(counted, counts=counts, calls=irregular.none())


def joined(counted: Attribution, timed: Attribution | None) -> Attribution:
    """The counts of the one with the times of the other; without times where there is no other."""
    if timed is None:
        nothing = Iterations(counted.iterations.frame.clear(), (), ())
        return replace(counted, times=counted.times.clear(), iterations=nothing)
    calls = irregular.of_both(timed.calls, counted.calls)
    return replace(counted, times=timed.times, iterations=replace(timed.iterations, counted=()), calls=calls)


def calls_differ(counted: Attribution, timed: Attribution) -> int:
    """How many layers were called another number of times in the one pass's counted iterations than in the other: not
    the same work."""
    each = [
        times.filter(pl.col("owner") != UNATTRIBUTED).group_by("owner").agg(pl.col("calls").median())
        for times in (counted.times.filter("layers_counted"), timed.times)
    ]
    both = each[0].join(each[1], on="owner", how="full", coalesce=True)
    return both.filter(~pl.col("calls").eq_missing(pl.col("calls_right"))).height


def as_text(kernels: pl.DataFrame) -> pl.DataFrame:
    """With texts, which other tables are joined by."""
    return kernels.cast({name: kind for name, kind in KERNELS_SCHEMA.items() if name in kernels.columns})


def of_those(kernels: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``kernels`` whose ``KERNEL_KEYS`` some row of ``wanted`` has, as texts: these alone are made."""
    numbers = [pl.col(key).cast(kernels.schema[key], strict=False).alias(f"{key}_number") for key in KERNEL_KEYS]
    known = wanted.select(*KERNEL_KEYS, *numbers).unique()
    for key in KERNEL_KEYS:  # what no kernel has is no number, and not what has none
        known = known.filter(pl.col(key).is_null() | pl.col(f"{key}_number").is_not_null())
    keys = known.select(pl.col(f"{key}_number").alias(key) for key in KERNEL_KEYS)
    some = kernels.filter(pl.col("kernel").is_in(keys["kernel"].unique().implode()))  # of millions of rows
    return as_text(some.join(keys, on=KERNEL_KEYS, how="semi", nulls_equal=True))


def kernel_metrics(
    table: pl.DataFrame,
    definitions: Sequence[MetricDefinition],
    times: pl.DataFrame | None = None,
    by_kernel: Collection[str] = (),
) -> pl.DataFrame:
    """``KERNEL_KEYS`` and a column a metric of those that need nothing but events counted by kernel, and the ``time``
    (ns) of ``times``, where it is given. ``table``: with the columns of ``KERNELS_SCHEMA``; ``by_kernel``: events that
    were counted by kernel, of which kernels without a row have none."""
    wide = table.pivot("event", index=KERNEL_KEYS, values="value", aggregate_function="first").with_row_index("owner")
    wide = wide.with_columns(pl.lit(None, pl.Float64).alias(name) for name in set(by_kernel) - set(wide.columns))
    counts = [name for name in wide.columns if name not in ("owner", *KERNEL_KEYS)]
    wide = wide.with_columns(pl.col(counts).fill_null(0.0))
    if times is not None:
        wide = wide.join(times, on=KERNEL_KEYS, how="left", nulls_equal=True)
        counts.append("time")
    evaluable = [definition for definition in definitions if set(operands_of(definition)) <= set(counts)]
    found = values(wide, evaluable)
    return wide.select("owner", *KERNEL_KEYS).join(found, on="owner").drop("owner")
