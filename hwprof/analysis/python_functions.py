"""Which functions of Python each thread was in, from the looks of somebody at its stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import polars as pl

from hwprof.analysis.iterations import select
from hwprof.analysis.nesting import NONE, enclosing
from hwprof.analysis.python_stacks import Looks
from hwprof.analysis.statistics import wilson
from hwprof.run.manifest import PassRecord

SCHEMA: Final = pl.Schema(
    {
        "tid": pl.Int32,
        "depth": pl.Int32,
        "function": pl.String,
        "file": pl.String,
        "line": pl.Int32,  # that it had reached at the first look
        "outermost": pl.Boolean,  # it is not called by itself, however many others are between
        "begin_ns": pl.Int64,
        "end_ns": pl.Int64,
    }
)

_KEYS: Final = ("tid", "depth", "function", "file", "line", "begin_ns", "end_ns")


class _Open(NamedTuple):
    """A function that may go on."""

    depth: int
    function: str
    file: str
    line: int
    outermost: bool
    begin_ns: int
    end_ns: int


def calls(frames: pl.DataFrame, looks: Looks) -> pl.DataFrame:
    """Rows of ``python_frames`` of one pass, in ``SCHEMA``: as long as a function stays on the stack, below the same
    call, it is one row, whatever line it reaches. Two calls that no look fell between are one. Times are right on
    average, see ``Looks.lag_ns``.
    """
    found: list[tuple[Any, ...]] = []
    for (tid,), rows in frames.sort("begin_ns", "depth").partition_by("tid", as_dict=True, maintain_order=True).items():
        found += [(tid, *call) for call in _joined(rows.select(_KEYS[1:]))]
    table = pl.DataFrame(found, schema=SCHEMA, orient="row").sort("tid", "begin_ns", "depth")
    return table.with_columns(pl.col("begin_ns", "end_ns") - looks.lag_ns)


FUNCTIONS: Final = pl.Schema(
    {
        "stage": pl.String,
        "thread": pl.String,  # main: that calls the model; other: all others together
        "function": pl.String,
        "file": pl.String,
        "origin": pl.String,  # ``python_stacks.Origin``
        "looks": pl.Float64,  # about so many met it: self time x rate; null: nobody says how often somebody looked
        "inclusive_looks": pl.Float64,  # the same of its inclusive time
        "self_ns": pl.Float64,  # in one iteration, the mean: without the functions that it calls
        "inclusive_ns": pl.Float64,  # with them
        "share": pl.Float64,  # self time of the stage's time
        "share_low": pl.Float64,  # its 95% interval, by the looks of so long; null: nobody says how many
        "share_high": pl.Float64,
    }
)


def functions(found: pl.DataFrame, spans: pl.DataFrame, record: PassRecord, looks: Looks) -> pl.DataFrame:
    """One row a stage, thread and function, most self time first, in ``FUNCTIONS``. ``found``: as ``calls`` makes it;
    ``spans``: the pass's. A stage in another one is a part of that one, too. Iterations: those that times are of."""
    iterations = select(record.iterations).timed
    stages = spans.filter((pl.col("kind") == "stage") & pl.col("iteration").is_in(list(iterations)))
    windows = stages.select(stage="path", window="span", since_ns="begin_ns", until_ns="end_ns")
    numbered = found.with_row_index("call").with_columns(caller=_callers(found))
    parts = numbered.join_where(
        windows, pl.col("begin_ns") < pl.col("until_ns"), pl.col("end_ns") > pl.col("since_ns")
    ).with_columns(
        inside_ns=pl.min_horizontal("end_ns", "until_ns") - pl.max_horizontal("begin_ns", "since_ns"),
        thread=pl.when(pl.col("tid") == record.main_tid).then(pl.lit("main")).otherwise(pl.lit("other")),
    )
    called = parts.group_by("window", call="caller").agg(called_ns=pl.col("inside_ns").sum())
    parts = parts.join(called, on=["window", "call"], how="left").with_columns(
        self_ns=pl.col("inside_ns") - pl.col("called_ns").fill_null(0)
    )
    lengths = windows.group_by("stage").agg(whole_ns=(pl.col("until_ns") - pl.col("since_ns")).sum())
    rows = parts.group_by("stage", "thread", "function", "file").agg(
        pl.col("self_ns").sum(), inclusive_ns=pl.col("inside_ns").filter("outermost").sum()
    )
    per_iteration, rate = max(len(iterations), 1), pl.lit(looks.rate_hz, pl.Float64)
    share = pl.col("self_ns") / pl.col("whole_ns")
    low, high = wilson(share.clip(0, 1), pl.col("whole_ns") / 1e9 * pl.lit(looks.draws_hz, pl.Float64))
    of_one = (share <= 1) & rate.is_not_null()  # more: several threads' together
    return (
        rows.join(lengths, on="stage")
        .with_columns(
            pl.col("self_ns", "inclusive_ns") / per_iteration,
            looks=pl.col("self_ns") * rate / 1e9,
            inclusive_looks=pl.col("inclusive_ns") * rate / 1e9,
            share=share,
            share_low=pl.when(of_one).then(low),
            share_high=pl.when(of_one).then(high),
            origin=looks.origins(rows["file"]),
        )
        .sort("self_ns", "inclusive_ns", "stage", "function", "file", descending=[True, True, False, False, False])
        .select(FUNCTIONS.names())
        .cast(FUNCTIONS)
    )


def _callers(found: pl.DataFrame) -> pl.Series:
    """The place of each call's caller; null of the outermost. ``found`` is sorted by thread, begin and depth."""
    around = enclosing(*(found[name].cast(pl.Int64).to_numpy() for name in ("begin_ns", "end_ns", "tid")))
    return pl.Series(around).replace(NONE, None).cast(pl.UInt32)


def _joined(frames: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Of one thread; callers stand before those that they call. A frame that nobody knows of leaves a gap."""
    opened: list[_Open] = []
    for depth, function, file, line, begin_ns, end_ns in frames.iter_rows():
        here = next((number for number, one in enumerate(opened) if one.depth >= depth), len(opened))
        if here < len(opened):
            last = opened[here]
            if (last.depth, last.function, last.file, last.end_ns) == (depth, function, file, begin_ns):
                opened[here] = last._replace(end_ns=end_ns)
                continue
        yield from opened[here:]
        del opened[here:]
        outermost = (function, file) not in ((one.function, one.file) for one in opened)
        opened.append(_Open(depth, function, file, line, outermost, begin_ns, end_ns))
    yield from opened
