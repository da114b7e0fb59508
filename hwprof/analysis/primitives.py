"""oneDNN's primitives and the layers that executed them: which implementation ran, and where one fell back.

A primitive is joined to the call of a leaf layer that was open when it began. It is proven to lie there when it begins
and ends inside by more than the error of its clock; one that does not, or that several open layers could have called
(threads), is not joined but counted. Times are of one iteration of those in which oneDNN reported: for each layer the
one in which it took the median of its times, so that its parts add up; shares are of its time in the same one. What
fallbacks are is data (``primitives.toml``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import polars as pl

from hwprof.analysis.attribution import leaf_spans, whole_spans
from hwprof.analysis.implementations import fallback, knowledge
from hwprof.analysis.primitive_work import Work, work
from hwprof.analysis.recursion import outermost_calls
from hwprof.analysis.reorders import tensors

CLOCK: Final = "onednn"

BY_LAYER: Final = {
    "path": pl.String,
    "primitive": pl.String,
    "implementation": pl.String,
    "data_types": pl.String,
    "layouts": pl.String,
    "algorithm": pl.String,
    "tensor": pl.String,  # that a reorder brought into another layout: input, weights, output; null: not known
    "problem": pl.String,  # of the slowest
    "executions": pl.Int64,
    "time_ns": pl.Int64,
    "flops": pl.Float64,  # of all executions, by their problems; null: not known of one
    "bytes": pl.Float64,  # that must move at least
    "share": pl.Float64,  # of the layer's time in an iteration, all its calls
    "fallback": pl.String,  # reference, plain, generic, narrow; null: nothing to say
    "reason": pl.String,
    "remedy": pl.String,  # null: none is known
}

WITHOUT: Final = {
    "path": pl.String,
    "type": pl.String,
    "calls": pl.Int64,  # that executed no primitive, in an iteration; other calls of the layer may have
    "time_ns": pl.Int64,  # of these calls
    "reason": pl.String,  # for types that oneDNN would have primitives for; else null
    "remedy": pl.String,
}

LENGTH: Final = pl.col("end_ns") - pl.col("begin_ns")
"""Of spans."""

NOT_JOINED: Final = ("no time", "outside layers", "several layers", "across an edge")


@dataclass(frozen=True)
class Primitives:
    """What one pass's primitives tell."""

    calls: pl.DataFrame  # all of `primitives`, with iteration, span, path, call, and why_not (one of NOT_JOINED)
    by_layer: pl.DataFrame  # in BY_LAYER, layers in order of execution, most time first within a layer
    without: pl.DataFrame  # in WITHOUT, most time first: calls of leaf layers that executed none
    margin_ns: int | None  # the least distance of a joined primitive from its layer's edges
    whole_ns: int  # what layers are parts of, while oneDNN reported: the inference, or the iteration
    iterations: int  # in which it reported

    @property
    def warnings(self) -> pl.DataFrame:
        """The rows of ``by_layer`` that fell back, most time first."""
        return self.by_layer.filter(pl.col("fallback").is_not_null()).sort("time_ns", descending=True)

    def not_joined(self) -> dict[str, int]:
        """How many primitives belong to no layer, by reason."""
        reasons = self.calls["why_not"].drop_nulls().to_list()
        return {reason: reasons.count(reason) for reason in NOT_JOINED if reason in reasons}


def analyse(
    primitives: pl.DataFrame,
    spans: pl.DataFrame,
    layers: pl.DataFrame,
    error_ns: int,
    flags: Collection[str],
    restricted_to: str | None = None,
) -> Primitives:
    """``primitives`` and ``spans``: the rows of one pass; ``layers``: the run's layer table; ``error_ns``: of the
    pass's clock ``CLOCK``; ``flags``: the processor's vector extensions, as the collector's detail ``machine_flags``;
    ``restricted_to``: the variable that held oneDNN to fewer of them (``ONEDNN_MAX_CPU_ISA=AVX2``).
    """
    reported = _while_reporting(primitives, spans)
    leaves = outermost_calls(leaf_spans(reported, layers))
    located = locate(primitives, leaves, error_ns)
    located = located.with_columns(tensors(located))
    typical = _typical(leaves)
    shown, own = (frame.join(typical, on=["path", "iteration"], how="semi") for frame in (located, leaves))
    wholes = whole_spans(reported)[0].group_by("iteration").agg(LENGTH.sum().alias("length_ns"))
    margin = located.filter(pl.col("why_not").is_null())["margin_ns"].min()
    return Primitives(
        calls=located.drop("margin_ns"),
        by_layer=_by_layer(shown.sort("order"), own, flags, restricted_to),
        without=_without(shown, own, layers),
        margin_ns=margin if isinstance(margin, int) else None,
        whole_ns=int(wholes.select(pl.col("length_ns").median().fill_null(0)).item()),
        iterations=wholes.height,
    )


def _while_reporting(primitives: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """The spans of the iterations in which primitives were reported."""
    whole = spans.filter(pl.col("kind") == "iteration").select("iteration", "begin_ns", "end_ns").sort("begin_ns")
    times = primitives.drop_nulls("begin_ns").select(at="begin_ns").sort("at")
    inside = times.join_asof(whole, left_on="at", right_on="begin_ns").filter(pl.col("at") < pl.col("end_ns"))
    # Where nothing at all was reported, the iteration made for it is the last one.
    chosen = inside["iteration"].unique() if inside.height else whole.tail(1)["iteration"]
    return spans.filter(pl.col("iteration").is_in(chosen.implode()))


def _typical(leaves: pl.DataFrame) -> pl.DataFrame:
    """Of each layer (``path``) the ``iteration`` in which it took the median of its times, the lower one of two."""
    return (
        leaves.group_by("path", "iteration")
        .agg(layer_ns=LENGTH.sum())
        .sort("layer_ns", "iteration")
        .group_by("path")
        .agg(pl.col("iteration").get((pl.len() - 1) // 2))
    )


def locate(primitives: pl.DataFrame, leaves: pl.DataFrame, error_ns: int) -> pl.DataFrame:
    """``primitives`` in order with ``iteration``, ``span``, ``path`` and ``call`` of the leaf layer's call that each
    lies in, ``margin_ns`` (its distance from that call's edges), and ``why_not`` where it lies in none for certain."""
    owners = leaves.select("iteration", "span", "path", "call", from_ns="begin_ns", until_ns="end_ns").sort("from_ns")
    begun = owners["from_ns"].search_sorted(primitives["begin_ns"], side="right")
    ended = owners["until_ns"].sort().search_sorted(primitives["begin_ns"], side="left")
    ends = pl.col("begin_ns") + pl.col("time_ns")
    margin = pl.min_horizontal(pl.col("begin_ns") - pl.col("from_ns"), pl.col("until_ns") - ends)
    found = (
        primitives.with_columns(open=begun.cast(pl.Int64) - ended.cast(pl.Int64))
        .sort("begin_ns", nulls_last=True)
        .join_asof(owners, left_on="begin_ns", right_on="from_ns", check_sortedness=False)
        .sort("order")
        .with_columns(margin_ns=margin)
        .with_columns(
            why_not=pl.when(pl.col("begin_ns").is_null())
            .then(pl.lit("no time"))
            .when(pl.col("open") == 0)
            .then(pl.lit("outside layers"))
            .when((pl.col("open") > 1) | (pl.col("begin_ns") > pl.col("until_ns")))
            .then(pl.lit("several layers"))
            .when(pl.col("margin_ns") <= error_ns)
            .then(pl.lit("across an edge"))
        )
    )
    joined = pl.col("why_not").is_null()
    return found.with_columns(
        pl.when(joined).then(pl.col(name)).alias(name) for name in ("iteration", "span", "path", "call", "margin_ns")
    ).drop("open", "from_ns", "until_ns", strict=False)


def _by_layer(
    located: pl.DataFrame, leaves: pl.DataFrame, flags: Collection[str], restricted_to: str | None
) -> pl.DataFrame:
    lengths = leaves.group_by("path").agg(layer_ns=LENGTH.sum(), first_ns=pl.col("begin_ns").min())
    key = ["path", "primitive", "implementation", "data_types", "layouts", "algorithm", "tensor"]
    rows = (
        _with_work(located.drop_nulls("path"))
        .group_by(key)
        .agg(
            pl.col("problem").sort_by("time_ns").last(),
            *(pl.when(~pl.col(name).has_nulls()).then(pl.col(name).sum()).alias(name) for name in Work._fields),
            executions=pl.len(),
            time_ns=pl.col("time_ns").sum(),
        )
        .join(lengths, on="path")
        .sort("first_ns", "time_ns", *key, descending=[False, True, *[False] * len(key)])
        .with_columns(share=pl.col("time_ns") / pl.col("layer_ns"))
    )
    pairs = zip(rows["primitive"], rows["implementation"], strict=True)
    verdicts = [fallback(primitive, implementation, flags, restricted_to) for primitive, implementation in pairs]
    return rows.with_columns(
        pl.Series("fallback", [verdict.kind for verdict in verdicts], dtype=pl.String),
        pl.Series("reason", [verdict.reason for verdict in verdicts], dtype=pl.String),
        pl.Series("remedy", [verdict.remedy for verdict in verdicts], dtype=pl.String),
    ).select(pl.col(name).cast(dtype) for name, dtype in BY_LAYER.items())


def _with_work(located: pl.DataFrame) -> pl.DataFrame:
    """Each with the ``flops`` and ``bytes`` of its problem."""
    reported = located.select("primitive", "problem", "data_types").iter_rows()
    works = [work(*one) if None not in one else None for one in reported]
    return located.with_columns(
        pl.Series(name, [getattr(one, name, None) for one in works], dtype=pl.Float64) for name in Work._fields
    )


def _without(located: pl.DataFrame, leaves: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    bare = leaves.join(
        located.drop_nulls("span").select("iteration", "span").unique(), on=["iteration", "span"], how="anti"
    )
    types = layers.unique("path", keep="first").select("path", "type")
    known = {name: bypass for bypass in knowledge().bypass for name in bypass.types}
    reasons = {name: bypass.reason for name, bypass in known.items()}
    remedies = {name: bypass.remedy for name, bypass in known.items()}
    return (
        bare.group_by("path")
        .agg(calls=pl.len(), time_ns=LENGTH.sum())
        .join(types, on="path", how="left")
        .with_columns(
            reason=pl.col("type").replace_strict(reasons, default=None, return_dtype=pl.String),
            remedy=pl.col("type").replace_strict(remedies, default=None, return_dtype=pl.String),
        )
        .sort("time_ns", "path", descending=[True, False])
        .select(pl.col(name).cast(dtype) for name, dtype in WITHOUT.items())
    )
