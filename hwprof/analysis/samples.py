"""What ran when a sample was taken, by time alone: leaf layer, module, framework's operator, stage, iteration.

As with counts (``attribution``), one leaf layer runs at a time, so a sample of any thread belongs to the leaf that was
running then: a worker's as well as the calling thread's. Where several run at a time on threads of their own, each of
these threads' samples belong to its own (``own_threads``). Nothing is dropped: a sample in the inference but in no leaf
is ``UNATTRIBUTED``, one outside of the inference has no layer, and both can be counted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import polars as pl

from hwprof.analysis.attribution import owning_spans, whole_spans
from hwprof.analysis.own_threads import layers_at, own_calls
from hwprof.analysis.owners import UNATTRIBUTED, is_rest
from hwprof.analysis.timeline import Timeline

FEW_SAMPLES: Final = 10
"""With fewer samples than that a time is known to no better than a factor of two or so: nothing is derived from it."""

OWNERS: Final = ("iteration", "stage", "layer", "module", "operator")
"""The columns that samples get."""


def inference_spans(spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """What owns the time of the inference, as ``path``: leaf layers, around them the modules' own code, and around
    these ``UNATTRIBUTED``."""
    wholes = whole_spans(spans)[0].with_columns(path=pl.lit(UNATTRIBUTED))
    return pl.concat([wholes, owning_spans(spans, layers).with_columns(path="owner").select(wholes.columns)])


def attribute_samples(
    samples: pl.DataFrame, spans: pl.DataFrame, layers: pl.DataFrame, team: Collection[int] | None = None
) -> pl.DataFrame:
    """The samples of one pass by time, with five more columns; ``spans`` are that pass's, ``layers`` the run's;
    ``team``: the threads that work for the one that calls the model (``team.team``), None: all do.

    ``iteration`` (null: outside of any); ``stage``: the innermost one's name (null: outside); ``layer``: a leaf's path,
    ``UNATTRIBUTED`` within the inference (the iteration, where none is marked) but in no leaf, null outside of it;
    ``module``: the innermost one of the model, leaf or not, so that what a block does between leaves is its own;
    ``operator``: the innermost one that ran on the thread that calls the model (null: none, or none was recorded), of
    samples of that thread and its team alone: what others ran meanwhile, nobody recorded.
    """
    samples = samples if samples["time_ns"].is_sorted() else samples.sort("time_ns", maintain_order=True)
    times = samples["time_ns"].to_numpy()
    iterations = spans.filter(pl.col("kind") == "iteration")
    callers = iterations.select("pid", "tid").unique()
    stages = spans.filter(pl.col("kind") == "stage")
    operators = spans.filter(pl.col("kind") == "op").join(callers, on=["pid", "tid"], how="semi")
    modules = spans.filter(pl.col("kind") == "layer")
    owners = inference_spans(spans, layers)
    running = {"stage": stages, "layer": owners, "module": modules, "operator": operators}
    placed = samples.with_columns(
        Timeline.of(iterations).values_at(iterations["iteration"], times).alias("iteration"),
        *(
            Timeline.of(frame).values_at(_by_number(frame["path"]), times).alias(name)
            for name, frame in running.items()
        ),
    )
    own = layers_at(own_calls(owners, ()), samples["tid"], times)
    if own is not None:
        placed = placed.with_columns(layer=pl.coalesce(own.cast(placed.schema["layer"]), "layer"))
    if team is None:
        return placed
    return placed.with_columns(operator=pl.when(pl.col("tid").is_in([*callers["tid"], *team])).then("operator"))


def coverage(attributed: pl.DataFrame) -> pl.DataFrame:
    """How many samples, and how much processor time, have which kind of owner: ``where`` is ``layer``,
    ``unattributed`` (both within the inference) or ``outside``; ``share`` is of the samples of the inference, and null
    for those outside."""
    layer = pl.col("layer").cast(pl.String)
    where = (
        pl.when(layer.is_null())
        .then(pl.lit("outside"))
        .when(layer == UNATTRIBUTED)
        .then(pl.lit(UNATTRIBUTED))
        .when(is_rest(layer))
        .then(pl.lit("own code"))
        .otherwise(pl.lit("layer"))
    )
    rows = attributed.group_by(where.alias("where")).agg(samples=pl.len().cast(pl.Int64), cpu_ns=pl.col("cpu_ns").sum())
    inside = pl.col("where") != "outside"
    share = pl.col("samples") / pl.col("samples").filter(inside).sum()
    return rows.with_columns(share=pl.when(inside).then(share)).sort("where")


def _by_number(names: pl.Series) -> pl.Series:
    """The names as numbers of distinct ones: each is kept once however many samples have it."""
    return names.cast(pl.Enum(names.unique(maintain_order=True)))
