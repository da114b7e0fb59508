"""What a layer, and a module's own code between its layers, is made of: the framework's operators that it calls itself.

By the trace pass: that it runs slower than the measure pass is why shares are the message.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.attribution import owning_spans
from hwprof.analysis.nesting import NONE, enclosing

SCHEMA: Final = pl.Schema(
    {
        "layer": pl.String,  # an owner of ``attribution``: a leaf's path, or ``owners.own`` of another module
        "operator": pl.String,  # null: outside of operators
        "calls": pl.Float64,  # in one iteration; null: outside of operators
        "time_ns": pl.Float64,  # in one iteration, the mean: with the operators that it calls in turn
        "share": pl.Float64,  # of the layer's time, in which the modules that it calls are not; null: it has none
    }
)


def layer_operators(spans: pl.DataFrame, layers: pl.DataFrame, iterations: tuple[int, ...]) -> pl.DataFrame:
    """One row a layer and operator that it calls, in ``SCHEMA``, most time first; with what is outside of
    operators they add up to the layer's time. ``spans`` are the trace pass's.

    Who calls whom is found by time, thread by thread. What an operator does in a module that it calls is the module's.
    """
    rows = _rows(spans.filter(pl.col("iteration").is_in(list(iterations))), layers)
    if rows.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    placed = _placed(rows).filter(pl.col("layer").is_not_null())
    per_iteration = max(len(iterations), 1)
    found = placed.group_by("layer", "operator").agg(
        calls=pl.when(pl.col("operator").first().is_not_null()).then(pl.col("called").sum() / per_iteration),
        time_ns=pl.col("self_ns").sum() / per_iteration,
    )
    share = pl.col("time_ns") / pl.col("time_ns").sum().over("layer").replace(0, None)
    ordered = found.with_columns(share=share).sort("time_ns", "layer", "operator", descending=[True, False, False])
    return ordered.select(SCHEMA.names()).cast(SCHEMA)


def called_operators(spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """Each call of an operator that no operator called, unless there is a module between them: ``pid``, ``tid``,
    ``iteration``, ``begin_ns``, ``end_ns``, ``layer`` (null: outside of the model) and ``operator``."""
    rows = _rows(spans, layers)
    placed = _placed(rows)
    return (
        rows.select("pid", "tid", "iteration", "begin_ns", "end_ns")
        .hstack(placed.select("layer", "operator", "called"))
        .filter("called")
        .drop("called")
    )


def _rows(spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """Spans of modules and operators, as ``nesting.enclosing`` wants them."""
    columns = ("pid", "tid", "iteration", "begin_ns", "end_ns")
    modules = owning_spans(spans, layers).select(*columns, layer="owner")
    calls = spans.filter(kind="op").select(*columns, operator="path")
    length = pl.col("end_ns") - pl.col("begin_ns")
    order = ["pid", "tid", "begin_ns", length, pl.col("operator").is_not_null()]
    return pl.concat([modules, calls], how="diagonal").sort(order, descending=[False, False, False, True, False])


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """``rows`` of modules and operators by thread, as ``nesting.enclosing`` wants them, made into: the ``layer`` whose
    time it is, the ``operator`` that this layer called, whether it is that call itself, and its own time."""
    begins, ends = rows["begin_ns"].to_numpy(), rows["end_ns"].to_numpy()
    threads = rows.select(pl.struct("pid", "tid").rle_id())["pid"].to_numpy()
    around = enclosing(begins, ends, threads)
    own = ends - begins
    inner = np.flatnonzero(around != NONE)
    np.subtract.at(own, around[inner], np.minimum(ends[inner], ends[around[inner]]) - begins[inner])
    outermost, caller = _callers(around, rows["operator"].is_not_null().to_numpy())
    number = np.arange(len(own))
    return pl.DataFrame(
        {
            "layer": _taken(rows["layer"], caller),
            "operator": rows["operator"].gather(outermost),
            "called": (outermost == number) & (caller != number),
            "self_ns": own,
        }
    )


def _callers(around: NDArray[np.int64], is_operator: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each row the outermost operator in the innermost module around it, and that module (``NONE``: in no module).
    A module's are itself."""
    outermost = np.arange(len(around))
    caller = np.where(is_operator, around, outermost)
    while (inside := np.flatnonzero((caller != NONE) & is_operator[caller])).size:
        outermost[inside] = caller[inside]
        caller[inside] = around[caller[inside]]
    return outermost, caller


def _taken(values: pl.Series, places: NDArray[np.int64]) -> pl.Series:
    """The values at these places; null at ``NONE``."""
    return values.gather(pl.Series(places).replace(NONE, None))
