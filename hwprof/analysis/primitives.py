"""oneDNN's primitives and the layers that executed them: which implementation ran, and where one fell back.

A primitive is joined to the call of a leaf layer that was open when it began. It is proven to lie there when it begins
and ends inside by more than the error of its clock; one that does not, or that several open layers could have called
(threads), is not joined but counted. Its time is that of the one iteration in which oneDNN reported, as a share of the
layer's time in the same iteration. What fallbacks are is data (``primitives.toml``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

import msgspec
import polars as pl

from hwprof.analysis.attribution import leaf_spans

COLLECTOR: Final = "onednn_verbose"
CLOCK: Final = "onednn"

BY_LAYER: Final = {
    "path": pl.String,
    "primitive": pl.String,
    "implementation": pl.String,
    "data_types": pl.String,
    "layouts": pl.String,
    "algorithm": pl.String,
    "problem": pl.String,  # of the slowest
    "executions": pl.Int64,
    "time_ns": pl.Int64,
    "share": pl.Float64,  # of the layer's time in that iteration, all its calls
    "fallback": pl.String,  # reference, plain, generic, narrow; null: nothing to say
    "reason": pl.String,
}

WITHOUT: Final = {
    "path": pl.String,
    "type": pl.String,
    "calls": pl.Int64,  # that executed no primitive, in that iteration; other calls of the layer may have
    "time_ns": pl.Int64,  # of these calls
    "reason": pl.String,  # for types that oneDNN would have primitives for; else null
}

NOT_JOINED: Final = ("no time", "outside layers", "several layers", "across an edge")


class Fallback(msgspec.Struct, frozen=True):
    """What an implementation's name means."""

    pattern: str
    kind: str
    reason: str
    primitive: list[str] | None = None  # None: any


class InstructionSet(msgspec.Struct, frozen=True):
    """One family of vector instructions."""

    word: str
    bits: int
    flags: list[str]


class Bypass(msgspec.Struct, frozen=True):
    """Why layers of these types may execute no primitive."""

    types: list[str]
    reason: str


class Knowledge(msgspec.Struct, frozen=True):
    """The file ``primitives.toml``."""

    bypass: list[Bypass]
    fallback: list[Fallback]
    instruction_set: list[InstructionSet]


@dataclass(frozen=True)
class Primitives:
    """What one pass's primitives tell."""

    calls: pl.DataFrame  # the rows of `primitives` with iteration, span, path, call, and why_not (one of NOT_JOINED)
    by_layer: pl.DataFrame  # in BY_LAYER, layers in order of execution, most time first within a layer
    without: pl.DataFrame  # in WITHOUT, most time first: calls of leaf layers that executed none
    margin_ns: int | None  # the least distance of a joined primitive from its layer's edges

    @property
    def warnings(self) -> pl.DataFrame:
        """The rows of ``by_layer`` that fell back, most time first."""
        return self.by_layer.filter(pl.col("fallback").is_not_null()).sort("time_ns", descending=True)

    def not_joined(self) -> dict[str, int]:
        """How many primitives belong to no layer, by reason."""
        reasons = self.calls["why_not"].drop_nulls().to_list()
        return {reason: reasons.count(reason) for reason in NOT_JOINED if reason in reasons}


def analyse(
    primitives: pl.DataFrame, spans: pl.DataFrame, layers: pl.DataFrame, error_ns: int, flags: Collection[str]
) -> Primitives:
    """``primitives`` and ``spans``: the rows of one pass; ``layers``: the run's layer table; ``error_ns``: of the
    pass's clock ``CLOCK``; ``flags``: the processor's vector extensions, as the collector's detail ``machine_flags``.
    """
    leaves = _leaves_while_reporting(primitives, spans, layers)
    located = locate(primitives, leaves, error_ns)
    by_layer = _by_layer(located, leaves, flags)
    margin = located.filter(pl.col("why_not").is_null())["margin_ns"].min()
    return Primitives(
        calls=located.drop("margin_ns"),
        by_layer=by_layer,
        without=_without(located, leaves, layers),
        margin_ns=margin if isinstance(margin, int) else None,
    )


def _leaves_while_reporting(primitives: pl.DataFrame, spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """The leaf layers' spans of the iterations in which primitives were reported."""
    whole = spans.filter(pl.col("kind") == "iteration").select("iteration", "begin_ns", "end_ns").sort("begin_ns")
    times = primitives.drop_nulls("begin_ns").select(at="begin_ns").sort("at")
    inside = times.join_asof(whole, left_on="at", right_on="begin_ns").filter(pl.col("at") < pl.col("end_ns"))
    # Where nothing at all was reported, the iteration made for it is the last one.
    chosen = inside["iteration"].unique() if inside.height else whole.tail(1)["iteration"]
    return leaf_spans(spans.filter(pl.col("iteration").is_in(chosen.implode())), layers)


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


def _by_layer(located: pl.DataFrame, leaves: pl.DataFrame, flags: Collection[str]) -> pl.DataFrame:
    lengths = leaves.group_by("path").agg(
        layer_ns=(pl.col("end_ns") - pl.col("begin_ns")).sum(), first_ns=pl.col("begin_ns").min()
    )
    key = ["path", "primitive", "implementation", "data_types", "layouts", "algorithm"]
    rows = (
        located.drop_nulls("path")
        .group_by(key)
        .agg(
            pl.col("problem").sort_by("time_ns").last(),
            pl.len().cast(pl.Int64).alias("executions"),
            pl.col("time_ns").sum(),
        )
        .join(lengths, on="path")
        .sort("first_ns", "time_ns", *key, descending=[False, True, *[False] * len(key)])
        .with_columns(share=pl.col("time_ns") / pl.col("layer_ns"))
    )
    pairs = list(zip(rows["primitive"], rows["implementation"], strict=True))
    told = [fallback(primitive, implementation, flags) for primitive, implementation in pairs]
    return rows.with_columns(
        pl.Series("fallback", [kind for kind, _ in told], dtype=pl.String),
        pl.Series("reason", [reason for _, reason in told], dtype=pl.String),
    ).select(pl.col(name).cast(dtype) for name, dtype in BY_LAYER.items())


def _without(located: pl.DataFrame, leaves: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    bare = leaves.join(
        located.drop_nulls("span").select("iteration", "span").unique(), on=["iteration", "span"], how="anti"
    )
    types = layers.unique("path", keep="first").select("path", "type")
    reasons = {name: known.reason for known in knowledge().bypass for name in known.types}
    return (
        bare.group_by("path")
        .agg(calls=pl.len(), time_ns=(pl.col("end_ns") - pl.col("begin_ns")).sum())
        .join(types, on="path", how="left")
        .with_columns(reason=pl.col("type").replace_strict(reasons, default=None, return_dtype=pl.String))
        .sort("time_ns", "path", descending=[True, False])
        .select(pl.col(name).cast(dtype) for name, dtype in WITHOUT.items())
    )


def fallback(primitive: str, implementation: str, flags: Collection[str]) -> tuple[str | None, str | None]:
    """What is to be said of an implementation, as kind and reason: ``reference``, ``plain`` or ``generic`` code, or
    ``narrow`` where its vectors are shorter than those of the processor with these flags; None and None otherwise."""
    for known in knowledge().fallback:
        if known.primitive and primitive not in known.primitive:
            continue
        if re.fullmatch(known.pattern, implementation):
            return known.kind, known.reason
    has, used = vector_bits(flags), _used_bits(implementation)
    if has is not None and used is not None and used < has:
        return "narrow", f"its vectors have {used} bits, the processor's {has}"
    return None, None


def vector_bits(flags: Collection[str]) -> int | None:
    """The length of the processor's vectors; None where no instruction set is known."""
    return max((known.bits for known in knowledge().instruction_set if set(known.flags) <= set(flags)), default=None)


def _used_bits(implementation: str) -> int | None:
    """By the instruction set in the name's last part; None where it names none (``jit:uni`` takes what there is)."""
    last: Sequence[str] = implementation.rpartition(":")[2].split("_")
    by_word = {known.word: known.bits for known in knowledge().instruction_set}
    return by_word.get(last[0])


@cache
def knowledge() -> Knowledge:
    """What names of implementations mean."""
    text = resources.files("hwprof.analysis").joinpath("primitives.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Knowledge)
