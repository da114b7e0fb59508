"""What each thread did through the inference: at work, waiting, or off its processor and why; it adds up to the time.

On a processor, samples say what a thread did: each stands for the processor time since the thread's last one. Off it,
switches say when and why, exactly. ``closed`` makes both add up to the elapsed time: what a thread had of a processor
is known from its switches, and shared out by its samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.lifetimes import FAR
from hwprof.analysis.own_threads import OwnCalls, beside, calling_threads, own_calls
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN
from hwprof.analysis.samples import inference_spans
from hwprof.analysis.states import (
    ABSENT,
    BLOCKED,
    BUSY,
    NOT_OF_ITS_OWN_ACCORD,
    PREEMPTED,
    UNKNOWN,
    UNSAMPLED,
    WAITING,
)
from hwprof.analysis.timeline import NONE, Timeline
from hwprof.analysis.unseen import unseen

Numbers = NDArray[np.int64]

MOMENTS: Final = pl.Schema(
    {
        "tid": pl.Int32,
        "time_ns": pl.Int64,  # when
        "begin_ns": pl.Int64,  # of a time off a processor: from when on
        "iteration": pl.Int32,
        "layer": pl.String,  # a leaf's path, or UNATTRIBUTED
        "call": pl.Int64,  # the same number: the same call of the same layer
        "state": pl.String,  # BUSY, WAITING, PREEMPTED, …, or what it waited for ("barrier", "lock", "I/O", …)
        "ns": pl.Int64,
        "sampled": pl.Boolean,
    }
)
"""A piece of a thread's time: a sample's, or one off a processor within one call of a layer."""


@dataclass(frozen=True)
class Inference:
    """When which layer ran in some iterations: ``owners`` are spans with ``path`` and ``iteration``, cut into pieces of
    time that have one owner each; ``own``: as ``own_threads`` has them."""

    owners: pl.DataFrame
    timeline: Timeline
    own: Mapping[int, OwnCalls]

    @classmethod
    def of(
        cls, spans: pl.DataFrame, layers: pl.DataFrame, iterations: Sequence[int], absences: pl.DataFrame
    ) -> Inference:
        """``spans`` of one pass, and its ``absences``: of a thread that calls the model these say when it waits for
        threads that it has begun, and when it works beside them."""
        owners = inference_spans(spans, layers).filter(pl.col("iteration").is_in(list(iterations)))
        timeline, calling = Timeline.of(owners), calling_threads(owners)
        own_accord = ~pl.col("state").is_in([*NOT_OF_ITS_OWN_ACCORD, ABSENT])
        waits = absences.filter(own_accord, pl.col("tid").is_in(pl.Series(calling, dtype=pl.Int32).implode()))
        return cls(owners, timeline, beside(owners, timeline, own_calls(owners, ()), waits))

    def elapsed(self) -> pl.DataFrame:
        """``iteration``, ``layer``, ``elapsed_ns``: the wall time of each layer in each iteration."""
        return _summed(_durations(self.owners, self.timeline))

    def callers_elapsed(self) -> pl.DataFrame:
        """As above, of the threads that call layers: each layer's time is all of that of its calls, also where several
        run at a time."""
        others = _durations(self.owners, self.timeline).filter(~self.in_own_calls())
        return _summed(
            pl.concat(
                [others.drop("tid"), *(_durations(own.spans, own.timeline).drop("tid") for own in self.own.values())]
            )
        )

    def by_time(self, sampled: pl.DataFrame) -> pl.DataFrame:
        """The samples with the layer that owns the time, whatever their own thread had open."""
        return _placed(sampled.sort("time_ns"), self.owners, self.timeline) if self.own else sampled

    def in_own_calls(self) -> pl.Expr:
        """Of rows with ``tid`` and ``layer``: whether ``own`` has them."""
        own = pl.col("tid").is_in(pl.Series(list(self.own), dtype=pl.Int32).implode())
        return own & (pl.col("layer") != UNATTRIBUTED)

    def calls(self, times_ns: Numbers) -> Numbers:
        """The number of the piece of time that each of the times lies in."""
        return np.searchsorted(self.timeline.edges, times_ns, side="right").astype(np.int64) - 1


def moments(sampled: pl.DataFrame, absences: pl.DataFrame, inference: Inference) -> pl.DataFrame:
    """Rows of ``MOMENTS`` of every thread that was sampled in the inference, by thread and time.

    ``sampled`` as ``sampled_kernels.sampled`` makes it of the same iterations, ``absences`` those of the pass.
    """
    on = _on(inference.by_time(sampled), inference)
    away = absences.join(on.select("tid").unique(), on="tid", how="semi", maintain_order="left")
    return pl.concat([on, _off(away, inference)]).sort("tid", "time_ns")


def callers_moments(
    sampled: pl.DataFrame, moments: pl.DataFrame, absences: pl.DataFrame, inference: Inference
) -> pl.DataFrame:
    """Of each call of a layer, and of what is around layers, the moments of the thread that made it: nobody else's.

    ``sampled`` and ``moments`` as above; of a thread that made a call and was not sampled it is known when it was off
    its processor. A thread with an open layer was there: what its life is not known to hold is not ``ABSENT``.
    """
    rows = inference.timeline.owner
    callers = np.where(rows < 0, -1, inference.owners["tid"].to_numpy()[rows])
    unsampled = absences.filter(pl.col("tid").is_in(np.unique(callers).tolist())).join(
        moments.select("tid").unique(), on="tid", how="anti", maintain_order="left"
    )
    every = pl.concat([moments, _off(unsampled, inference)])
    caller = pl.Series(callers[every["call"].to_numpy()], dtype=pl.Int32)
    made = every.filter((pl.col("tid") == caller) & ~inference.in_own_calls())
    return (
        pl.concat([made, *_in_own_calls(sampled, absences, inference)])
        .filter(pl.col("state") != ABSENT)
        .sort("time_ns", "tid")
    )


def _in_own_calls(sampled: pl.DataFrame, absences: pl.DataFrame, inference: Inference) -> Iterator[pl.DataFrame]:
    """The moments of threads in their ``own_calls``: on a processor, and off it."""
    theirs = pl.col("tid").is_in(list(inference.own))
    there, away = (rows.filter(theirs).partition_by("tid", as_dict=True) for rows in (sampled, absences))
    for tid, own in inference.own.items():
        if (tid,) in there:
            rows = there[(tid,)].sort("time_ns")
            yield _on(_placed(rows, own.spans, own.timeline), inference)
        if (tid,) in away:
            yield _off_in(away[(tid,)], own.spans, own.timeline, inference)


def _placed(sampled: pl.DataFrame, spans: pl.DataFrame, timeline: Timeline) -> pl.DataFrame:
    """Samples, by time, with ``layer`` and ``iteration`` by a ``timeline`` of these ``spans``; others are left
    out."""
    span = timeline.at(sampled["time_ns"].to_numpy())
    inside, rows = sampled.filter(span != NONE), spans[span[span != NONE]]
    return inside.with_columns(layer=rows["path"], iteration=rows["iteration"])


def unsampled_waits(moments: pl.DataFrame, absences: pl.DataFrame, inference: Inference) -> pl.DataFrame:
    """``tid``, ``state``, ``ns``: how long threads waited in the inference that were not sampled in it, and for what.
    Of those that were switched out, or in, at some time: others were there too, and slept all the time."""
    others = absences.join(moments.select("tid").unique(), on="tid", how="anti")
    waits = ~pl.col("state").is_in([ABSENT, PREEMPTED, UNKNOWN])
    off = _off(others.filter(waits), inference)
    return off.group_by("tid", "state").agg(pl.col("ns").sum()).sort("tid", "state")


def absences(switches: pl.DataFrame, lives: pl.DataFrame, samples: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """``tid``, ``begin_ns``, ``end_ns``, ``state``: when threads were off their processors, with ends everywhere; and
    ``woken_ns``, ``waker`` where it is known who ended that. All tables are one pass's, with all of its rows; ``lives``
    as ``lifetimes.lives`` makes it.

    One that did not come back was away from then on. One that came back without having left was away before. Neither
    holds beyond a thread's life: outside of that it is ``ABSENT``. One that by its switches was on a processor, but for
    long without a sample, was not: that time is ``UNKNOWN``.
    """
    state = (
        pl.when(pl.col("preempted").fill_null(False))
        .then(pl.lit(PREEMPTED))
        .otherwise(pl.col("reason").fill_null(BLOCKED))
    )
    place, last = pl.int_range(pl.len()).over("tid"), pl.len().over("tid") - 1
    whole = switches.sort("tid", pl.coalesce("out_ns", "in_ns")).filter(
        (pl.col("out_ns").is_not_null() | (place == 0)) & (pl.col("in_ns").is_not_null() | (place == last))
    )  # others have lost an end on the way
    away = (
        whole.select(
            "tid",
            "woken_ns",
            "waker",
            begin_ns=pl.col("out_ns").fill_null(-FAR),
            end_ns=pl.col("in_ns").fill_null(FAR),
            state=state,
        )
        .join(lives.rename({"begin_ns": "born_ns", "end_ns": "ended_ns"}), on="tid", how="left")
        .select(
            "tid",
            begin_ns=pl.max_horizontal("begin_ns", "born_ns"),
            end_ns=pl.min_horizontal("end_ns", "ended_ns"),
            state="state",
            woken_ns="woken_ns",
            waker="waker",
        )
        .filter(pl.col("end_ns") > pl.col("begin_ns"))
    )
    not_there = pl.concat(
        [
            lives.select("tid", begin_ns=pl.lit(-FAR, pl.Int64), end_ns="begin_ns"),
            lives.select("tid", begin_ns="end_ns", end_ns=pl.lit(FAR, pl.Int64)),
        ]
    ).filter(pl.col("end_ns") > pl.col("begin_ns"))
    absent = not_there.with_columns(state=pl.lit(ABSENT))
    known = pl.concat([away, absent], how="diagonal")
    return pl.concat([known, unseen(samples, spans, known, lives)], how="diagonal").sort("tid", "begin_ns")


def _on(sampled: pl.DataFrame, inference: Inference) -> pl.DataFrame:
    waits = pl.col("code").eq_missing(WAITING_DOMAIN)
    return sampled.select(
        "tid",
        "time_ns",
        begin_ns=pl.lit(None, pl.Int64),
        iteration="iteration",
        layer=pl.col("layer").cast(pl.String),
        call=pl.Series(inference.calls(sampled["time_ns"].to_numpy()), dtype=pl.Int64),
        state=pl.when(waits).then(pl.lit(WAITING)).otherwise(pl.lit(BUSY)),
        ns="cpu_ns",
        sampled=pl.lit(True),
    ).cast(MOMENTS)


def _off(away: pl.DataFrame, inference: Inference) -> pl.DataFrame:
    return _off_in(away, inference.owners, inference.timeline, inference)


def _off_in(away: pl.DataFrame, spans: pl.DataFrame, timeline: Timeline, inference: Inference) -> pl.DataFrame:
    """``timeline``: of these ``spans``."""
    interval, piece, begin, end = timeline.pieces(away["begin_ns"].to_numpy(), away["end_ns"].to_numpy())
    rows = timeline.owner[piece]
    return pl.DataFrame(
        {
            "tid": away["tid"].gather(interval),
            "time_ns": end,
            "begin_ns": begin,
            "iteration": spans["iteration"].gather(rows),
            "layer": spans["path"].gather(rows),
            "call": inference.calls(begin),
            "state": away["state"].gather(interval),
            "ns": end - begin,
            "sampled": np.zeros(len(piece), dtype=bool),
        }
    ).cast(MOMENTS)


def _durations(spans: pl.DataFrame, timeline: Timeline) -> pl.DataFrame:
    """``tid``, ``iteration``, ``layer`` and ``elapsed_ns`` of each piece of a ``timeline`` of these ``spans``."""
    edges = timeline.edges
    schema = pl.Schema({"tid": pl.Int32, "iteration": pl.Int32, "layer": pl.String, "elapsed_ns": pl.Int64})
    if not len(edges):
        return pl.DataFrame(schema=schema)
    _, rows, ns = timeline.overlaps(edges[:1], edges[-1:])
    named = spans.select("tid", "iteration", layer="path")[rows]
    return named.with_columns(elapsed_ns=pl.Series(ns)).cast(schema)


def _summed(durations: pl.DataFrame) -> pl.DataFrame:
    sums = durations.group_by("iteration", "layer").agg(pl.col("elapsed_ns").sum())
    return sums.sort("iteration", "layer")


def closed(moments: pl.DataFrame, elapsed: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """``tid``, ``by``, …, ``state``, ``ns``, ``samples``: the times of every thread, summed, such that those of a
    thread and group add up to the elapsed time.

    ``moments`` may have more columns; all but ``ns`` and ``sampled`` that are not a moment's own are kept apart in the
    sums. ``elapsed`` has ``by`` and ``elapsed_ns``. The processor time of a group without a sample is ``UNSAMPLED``.
    """
    extra = [name for name in moments.columns if name not in MOMENTS]
    keys = ["tid", *by, *extra, "state"]
    sums = moments.group_by(keys).agg(
        ns=pl.col("ns").sum().cast(pl.Float64),
        sampled_ns=pl.col("ns").filter("sampled").sum(),
        samples=pl.col("sampled").sum().cast(pl.Int64),
    )
    totals = sums.group_by("tid", *by).agg(
        found_ns=pl.col("sampled_ns").sum(), off_ns=(pl.col("ns") - pl.col("sampled_ns")).sum()
    )
    frames = moments.select("tid").unique().join(elapsed.group_by(by).agg(pl.col("elapsed_ns").sum()), how="cross")
    on = (
        frames.join(totals, on=["tid", *by], how="left")
        .with_columns(pl.col("found_ns", "off_ns").fill_null(0))
        .with_columns(on_ns=(pl.col("elapsed_ns") - pl.col("off_ns")).clip(0))
    )
    scaled = sums.join(on, on=["tid", *by], how="inner").with_columns(
        ns=pl.col("ns")
        - pl.col("sampled_ns")
        + pl.col("sampled_ns") * (pl.col("on_ns") / pl.col("found_ns").replace(0, None)).fill_null(0.0)
    )
    left = on.filter((pl.col("found_ns") == 0) & (pl.col("on_ns") > 0)).select(
        "tid", *by, state=pl.lit(UNSAMPLED), ns=pl.col("on_ns").cast(pl.Float64), samples=pl.lit(0, pl.Int64)
    )
    return pl.concat([scaled.select(*keys, "ns", "samples"), left], how="diagonal").sort(keys)
