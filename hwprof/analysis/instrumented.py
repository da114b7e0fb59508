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
from hwprof.analysis.attribution import Attribution, owned_counts, owning_spans, whole_spans, within
from hwprof.analysis.callers import with_callers
from hwprof.analysis.iterations import Iterations
from hwprof.analysis.metrics import operands_of, values
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE, is_leaf
from hwprof.run.manifest import MetricDefinition, PassRecord
from hwprof.run.schema import UNKNOWN_LIBRARY

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
        "share": pl.Float64,
    }
)

KERNEL_KEYS: Final = ("layer", "kernel", "library", "domain")
"""What tells kernels apart: one in each layer, and one (``layer`` null) in the whole."""

OPENMP: Final = "openmp"

UNNAMED: Final = "(unnamed)"
"""The kernel that stands for all of a library that has no names."""

UNKNOWN: Final = {"name": UNNAMED, "library": UNKNOWN_LIBRARY, "domain": "other"}
"""What stands for a kernel that the run does not describe."""


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
    owners = latest.select("span", "path", "call", owner=pl.col("span").cast(pl.String), caller="tid")
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
    """How many layers were called another number of times in the one pass than in the other: not the same work."""
    each = [
        found.times.filter(pl.col("owner") != UNATTRIBUTED).group_by("owner").agg(pl.col("calls").median())
        for found in (counted, timed)
    ]
    both = each[0].join(each[1], on="owner", how="full", coalesce=True)
    return both.filter(~pl.col("calls").eq_missing(pl.col("calls_right"))).height


def kernels(
    spans: pl.DataFrame,
    rows: pl.LazyFrame,
    names: pl.DataFrame,
    layers: pl.DataFrame,
    counted: Attribution,
    done: Collection[str] | None = None,
) -> pl.DataFrame:
    """What functions did themselves in an iteration (mean over those that counted), with the columns of
    ``KERNELS_SCHEMA``: numbers for texts (enumerations), which take a fifth of the memory; ``as_text`` has these.

    ``rows``: of the pass's ``kernel_counts``, millions, of which no more than their sums are held; ``names``: its
    ``kernels``. ``done``: only these layers and their sum, where others were cut short. ``layer`` is an owner of
    ``attribution``, or null: the whole (the inference). ``share`` is of the layer's count of that event, without the
    OpenMP runtime's, which are mostly waiting and have no share. Largest first. None of owners whose counts lack work:
    shares would be of what was counted.
    """
    iterations = counted.iterations.frame.filter("layers_counted").select("iteration")
    kept = spans.join(iterations, on="iteration", how="semi")
    wholes, _ = whole_spans(kept)
    keys = ["kernel", "library", "domain", "event", "provenance"]
    modules = with_callers(owning_spans(within(kept.filter(pl.col("kind") == "layer"), wholes), layers))
    owners = _enum([*modules["owner"].unique(), UNATTRIBUTED])
    rows, names = _numbered(rows), _known(names)
    inside = _named(_own(rows, modules.with_columns(layer=pl.col("owner").cast(owners))), names, ["layer"])
    if done is not None:
        inside = inside.filter(pl.col("layer").cast(pl.String).is_in(list(done)))
        whole = inside.group_by(keys).agg(pl.col("value").sum())
    else:
        of_whole = rows.join(wholes.lazy().select("span"), on="span", how="semi")
        whole = _named(_summed(of_whole, []), names, [])
    columns = ["layer", *keys, "value"]
    both = pl.concat(
        [
            inside.select(columns),
            whole.with_columns(layer=pl.lit(None, owners)).select(columns),
            _left(whole, inside, keys).with_columns(layer=pl.lit(UNATTRIBUTED, owners)).select(columns),
        ]
    )
    lacking = counted.uncounted["owner"].unique().to_list()
    both = both.filter(~pl.col("layer").cast(pl.String).fill_null(WHOLE).is_in(lacking))
    working = pl.col("domain").cast(pl.String) != OPENMP
    total = pl.col("value").filter(working).sum().over("layer", "event")
    apart = ["kernel", "layer", *keys[1:]]  # all that tells rows apart: every build of a report is the same
    ranked = both.sort("value", *apart, descending=[True, *(False for _ in apart)]).with_columns(
        pl.col("value") / max(iterations.height, 1), share=pl.when(working & (total > 0)).then(pl.col("value") / total)
    )
    return ranked.select(KERNELS_SCHEMA.names())


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
    return as_text(kernels.join(keys, on=KERNEL_KEYS, how="semi", nulls_equal=True))


def _enum(texts: Iterable[str | None]) -> pl.Enum:
    """The type of one of these texts: a number, in their order. Grouping and sorting strings would take most of the
    time, of a million rows that have a few thousand different ones."""
    return pl.Enum(sorted({text for text in texts if text is not None}))


def _numbered(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The columns of ``kernel_counts`` that are needed, with numbers for texts."""
    texts = ("event", "provenance")
    found = rows.select(texts).unique().collect(engine="streaming")
    kinds = {name: _enum(found[name]) for name in texts}
    return rows.select("span", "kernel", "value", *(pl.col(name).cast(kind) for name, kind in kinds.items()))


def _own(rows: pl.LazyFrame, modules: pl.DataFrame) -> pl.DataFrame:
    """The rows of modules by ``layer``, summed; what the modules did that it called is subtracted."""
    callers = modules.select(caller="layer", parent="span")
    called = modules.select("span", "layer", "parent").join(callers, on="parent", how="left").drop("parent")
    summed = _summed(rows.join(called.lazy(), on="span", how="inner"), ["layer", "caller"])
    below = summed.filter(pl.col("caller").is_not_null()).with_columns(-pl.col("value"), layer="caller")
    return pl.concat([summed, below]).drop("caller")


def _summed(rows: pl.LazyFrame, owner: list[str]) -> pl.DataFrame:
    """By kernel's number, of which there are many rows."""
    by = [*owner, "kernel", "event", "provenance"]
    return rows.group_by(by).agg(pl.col("value").sum()).collect(engine="streaming")


def _known(names: pl.DataFrame) -> pl.DataFrame:
    """``kernel`` (its number), ``name``, ``library`` and ``domain``, with numbers for texts."""
    known = names.select("kernel", "library", "domain", pl.col("name").fill_null(UNNAMED))
    texts = {name: _enum([*known[name].unique(), unknown]) for name, unknown in UNKNOWN.items()}
    return known.with_columns(pl.col(name).cast(kind) for name, kind in texts.items())


def _named(rows: pl.DataFrame, known: pl.DataFrame, owner: list[str]) -> pl.DataFrame:
    """What is summed by kernel's number, by name: those are few."""
    keys = [*owner, "kernel", "library", "domain", "event", "provenance"]
    return with_names(rows, known).with_columns(kernel="name").group_by(keys).agg(pl.col("value").sum())


def with_names(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """With the columns of ``known`` too."""
    joined = rows.join(known, on="kernel", how="left")
    return joined.with_columns(pl.col(name).fill_null(unknown) for name, unknown in UNKNOWN.items())


def kernel_metrics(
    table: pl.DataFrame,
    definitions: Sequence[MetricDefinition],
    times: pl.DataFrame | None = None,
    by_kernel: Collection[str] = (),
) -> pl.DataFrame:
    """``KERNEL_KEYS`` and a column a metric of those that need nothing but events counted by kernel, and the ``time``
    (ns) of ``times``, where it is given. ``table``: as ``kernels`` makes it; ``by_kernel``: events that were counted by
    kernel, of which kernels without a row have none."""
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


def _left(whole: pl.DataFrame, inside: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The whole's kernels minus the leaves'; none where nothing is left."""
    sums = inside.group_by(keys).agg(pl.col("value").sum())
    left = whole.join(sums, on=keys, how="left", suffix="_inside", nulls_equal=True)
    return left.with_columns(pl.col("value") - pl.col("value_inside").fill_null(0)).filter(pl.col("value") > 0)
