"""Overhead: how much slower the measuring made the measured, by comparing iterations and passes.

Only undisturbed iterations are compared, also where too few of them remain for times: what others took of one side, and
not of the other, is no overhead of measuring.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import polars as pl

from hwprof.analysis import statistics
from hwprof.analysis.attribution import Attribution, whole_spans
from hwprof.analysis.disturbed import is_disturbed
from hwprof.analysis.iterations import Iterations
from hwprof.analysis.owners import WHOLE, is_leaf
from hwprof.run.manifest import PassRecord
from hwprof.unavailable import Unavailable

APART: Final = 0.5
"""Of what the medians of two kinds of iterations are apart: three quarters of each kind are so far from the other."""

QUIETER: Final = "end other programs, or collect with --wait-quiet"


def watching_overhead(attribution: Attribution, record: PassRecord, spans: pl.DataFrame) -> pl.DataFrame:
    """The median time of iterations that timed their layers over that of bare ones, of the whole: a row as
    ``counting_overhead`` has, or none. ``record`` and ``spans`` are of the pass."""
    bare = [one.index for one in record.iterations if one.bare and not is_disturbed(one)]
    wholes, whole = whole_spans(spans.filter(pl.col("iteration").is_in(bare)))
    times = wholes.group_by("iteration").agg(time_ns=(pl.col("end_ns") - pl.col("begin_ns")).sum())
    base = times.select(pl.lit(WHOLE).alias("owner"), "iteration", "time_ns")
    timed = _undisturbed(attribution, _kinds(attribution.iterations)[0]).filter(owner=WHOLE)
    return _ratios(base if whole == attribution.whole else base.clear(), timed)


def why_no_watching_overhead(attribution: Attribution, record: PassRecord) -> Unavailable | None:
    """Why ``watching_overhead`` is not known, though the pass has iterations of both kinds."""
    bare = [one for one in record.iterations if one.bare]
    disturbed = [one.index for one in bare if is_disturbed(one)]
    timed = _kinds(attribution.iterations)[0]
    return _why_none(
        [(disturbed, [one.index for one in bare], "bare {}"), (attribution.iterations.disturbed, timed, "timed {}")]
    )


def counting_overhead(attribution: Attribution) -> pl.DataFrame:
    """By owner: the median time of iterations that counted layers over that of those that only timed them.

    Columns ``owner, base_ns, base_iterations, observed_ns, observed_iterations, ratio, error, distinguishable``; no
    rows where the pass has only one kind. ``error``: half of the ratio's 95% interval, null where a side has one
    iteration. ``distinguishable``: slower by more than that, and most iterations of either kind are apart; the rest is
    noise.
    """
    base, observed = _kinds(attribution.iterations)
    return _ratios(_undisturbed(attribution, base), _undisturbed(attribution, observed))


def why_no_counting_overhead(attribution: Attribution) -> Unavailable | None:
    """Why ``counting_overhead`` is not known, though the pass has iterations of both kinds."""
    base, observed = _kinds(attribution.iterations)
    disturbed = attribution.iterations.disturbed
    return _why_none([(disturbed, base, "timed {}"), (disturbed, observed, "counted {}")])


def pass_overhead(base: Attribution, observed: Attribution) -> pl.DataFrame:
    """By owner: the median time in the ``observed`` pass over that in the base's timed iterations."""
    return _ratios(_undisturbed(base, base.iterations.timed), _undisturbed(observed, observed.iterations.all))


def why_no_pass_overhead(base: Attribution, observed: Attribution) -> Unavailable | None:
    """Why ``pass_overhead`` is not known, though both passes have iterations."""
    kind = "timed {}" if _kinds(base.iterations)[0] else "counted {}"
    sides = [(base, base.iterations.timed, kind), (observed, observed.iterations.all, "{} of this pass")]
    return _why_none([(side.iterations.disturbed, chosen, name) for side, chosen, name in sides])


def of_whole(ratios: pl.DataFrame) -> dict[str, Any] | None:
    """The row of the whole without its name; None where one side of it is not known."""
    rows = ratios.filter((pl.col("owner") == WHOLE) & pl.col("ratio").is_not_null()).drop("owner")
    return rows.row(0, named=True) if rows.height else None


def spread(ratios: pl.DataFrame) -> tuple[float, float, float] | None:
    """The layers' quartiles (25 %, 50 %, 75 %) of a table of ratios by owner; None of fewer than two layers,
    which have no spread."""
    layers = ratios.filter(is_leaf(pl.col("owner")))["ratio"].drop_nulls()
    if layers.len() < 2:
        return None
    low, middle, high = (layers.quantile(part, "linear") for part in (0.25, 0.5, 0.75))
    return float(low or 0.0), float(middle or 0.0), float(high or 0.0)


def _kinds(iterations: Iterations) -> tuple[Sequence[int], Sequence[int]]:
    """The iterations that only timed their layers, and those that counted them."""
    counted = set(iterations.counted)
    return [index for index in iterations.timed if index not in counted], iterations.counted


def _undisturbed(attribution: Attribution, chosen: Sequence[int]) -> pl.DataFrame:
    """The times in those of the ``chosen`` iterations that nobody disturbed."""
    disturbed = set(attribution.iterations.disturbed)
    return attribution.times.filter(pl.col("iteration").is_in([one for one in chosen if one not in disturbed]))


def _why_none(sides: Sequence[tuple[Collection[int], Sequence[int], str]]) -> Unavailable | None:
    """Of two sides (the disturbed iterations, which it has, how to call them) that have some, but none to compare."""
    disturbed = [
        f"all {len(chosen)} {name.format('iterations')}" if len(chosen) > 1 else f"the {name.format('iteration')}"
        for excluded, chosen, name in sides
        if set(chosen) <= set(excluded)
    ]
    if not disturbed or not all(chosen for _, chosen, _ in sides):
        return None
    return Unavailable(f"{' and '.join(disturbed)} were disturbed", QUIETER)


def _ratios(base: pl.DataFrame, observed: pl.DataFrame) -> pl.DataFrame:
    medians = [
        times.group_by("owner").agg(
            pl.col("time_ns").median().alias(f"{name}_ns"),
            pl.len().cast(pl.Int64).alias(f"{name}_iterations"),
            statistics.mad("time_ns").alias(f"{name}_mad"),
            pl.col("time_ns").quantile(quarter, "linear").alias(f"{name}_quartile"),
        )
        for times, name, quarter in ((base, "base", 0.75), (observed, "observed", 0.25))
    ]
    ratio = pl.when(pl.col("base_ns") > 0).then(pl.col("observed_ns") / pl.col("base_ns"))
    both = medians[0].join(medians[1], on="owner", how="inner").sort("owner").with_columns(ratio=ratio)
    relative = [
        statistics.median_error(f"{side}_mad", f"{side}_iterations") / pl.col(f"{side}_ns")
        for side in ("base", "observed")
    ]
    both = both.with_columns(error=pl.col("ratio") * (relative[0] ** 2 + relative[1] ** 2).sqrt())
    slower = (pl.col("ratio") - 1 > pl.col("error")) & _apart()
    return both.with_columns(distinguishable=slower.fill_null(False)).drop(
        "base_mad", "observed_mad", "base_quartile", "observed_quartile"
    )


def _apart() -> pl.Expr:
    """Whether most of both sides' iterations are apart by half of what their medians are: of a model that alternates
    between two amounts of work either median may be of either, and their spread (MAD) is small."""
    between = pl.col("observed_ns") - pl.col("base_ns")
    slow_half = pl.col("observed_quartile") - pl.col("base_ns") >= APART * between
    fast_half = pl.col("observed_ns") - pl.col("base_quartile") >= APART * between
    return slow_half & fast_half
