"""How well a layer's threads worked together, and when they were off a processor.

A thread is *busy* where a sample found it outside of the OpenMP runtime, and *waits* within it: the runtime waits in a
loop, which takes processor time. Where it gives up its processor instead, no sample finds it; ``switches`` do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from typing import Final

import polars as pl

from hwprof.analysis.owners import WHOLE
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN
from hwprof.analysis.samples import inference_spans
from hwprof.analysis.states import ABSENT, BARRIER_LATENCY, BUSY, TEAM_WAITS, UNKNOWN, UNSAMPLED, WAITING
from hwprof.analysis.timeline import Timeline

SINGLE: Final = 0.9
"""From which share of a layer's work on, done by one of several threads, it counts as single-threaded."""

MOSTLY: Final = 0.5
"""For which part of a layer's time that thread must be at work: where even that one hardly was, something else is in
the way."""

WORKS: Final = 0.01
"""From this share of the busiest thread's processor time on, a thread counts as one that works."""

SHARES: Final = 0.1
"""From this share of the busiest thread's work on, a thread beside those that were asked for counts as one that shares
it: a thread that has something else to do is no loss of parallelism."""

WORTH_NAMING: Final = 0.1
"""Of the threads' time in a layer: less is not told."""

FEW_FOR_BALANCE: Final = 30
"""With fewer samples that found a layer's threads busy, nobody knows which of them did how much of its work."""

CONTAMINATED: Final = 0.2
"""From which share of waiting on a layer's counters are said to mix it with work: an instruction of a waiting loop
takes several times the cycles of one of a good kernel, or a part of them."""

MOST_EFFICIENT: Final = 1.25
"""Samples may find a little more than the time: of a layer of 30 ms in one of a hundred."""

IMBALANCE: Final = "imbalance"

UNUSED: Final = "unused threads"
"""Those that were asked for and had no part in a layer."""

NOT_A_LOSS: Final = (UNSAMPLED, UNKNOWN, ABSENT)

PASSING: Final = 0.01
"""As so much of a thread more that were there at a time count for none: creation and end are not the same moment."""


def at_a_time(threads: float) -> int:
    """How many threads share work of which that many were there on average: the next whole number."""
    return math.ceil(threads - PASSING)


def threads_by_layer(sampled: pl.DataFrame) -> pl.DataFrame:
    """One row a layer and thread: ``samples``, ``busy_samples`` of them, ``busy_ns`` and ``wait_ns`` of its processor
    time. ``sampled`` as ``sampled_kernels.sampled`` makes it."""
    waits = (pl.col("code") == WAITING_DOMAIN).fill_null(False)
    return (
        sampled.group_by("layer", "tid")
        .agg(
            pl.len().cast(pl.Int64).alias("samples"),
            busy_samples=(~waits).sum().cast(pl.Int64),
            busy_ns=pl.col("cpu_ns").filter(~waits).sum(),
            wait_ns=pl.col("cpu_ns").filter(waits).sum(),
        )
        .with_columns(pl.col("layer").cast(pl.String))
        .sort("layer", "tid")
    )


def sharing(threads_by_layer: pl.DataFrame, threads: int) -> pl.DataFrame:
    """``layer``, ``tid``, ``busy_ns``, ``busy_samples`` and ``threads`` of those that share a layer's work: as many as
    the workload runs with, or as are found busy in it where the model's own code brings more (a pool); the busiest
    ones. Threads one after the other must be one already (``lanes``), or they seem to share what they did in turn."""
    busy = pl.col("busy_ns")
    working = (busy >= SHARES * busy.max().over("layer")) & (busy > 0)
    rows = threads_by_layer.with_columns(
        threads=pl.max_horizontal(pl.lit(threads, pl.UInt32), working.sum().over("layer").cast(pl.UInt32))
    )
    rank = busy.rank("ordinal", descending=True).over("layer")
    columns = ("layer", "tid", "busy_ns", "busy_samples", pl.col("threads").cast(pl.Int64))
    return rows.filter(rank <= pl.col("threads")).select(columns)


def parallelism(threads_by_layer: pl.DataFrame, times_ns: pl.DataFrame, threads: int) -> pl.DataFrame:
    """One row a layer: ``time_ns``, ``threads`` that share its work, ``efficiency``, ``imbalance``.

    ``times_ns`` (layer, time_ns) is the wall time of the layer's calls in the iterations that the samples are of;
    ``threads`` how many the workload runs with; of a layer that more of them share (``sharing``) it is these.
    Efficiency is busy time over threads times wall time: 1 where none of them ever waited or slept. Imbalance is the
    busiest thread's busy time over their mean, minus 1: 0 where all did the same, threads - 1 where one did all. Null
    where fewer than ``FEW_FOR_BALANCE`` samples found them busy: chance alone has two of them on one thread every
    second time.
    """
    busy = pl.col("busy_ns")
    each = sharing(threads_by_layer, threads)
    sums = each.group_by("layer").agg(
        pl.col("busy_ns", "busy_samples").sum(), pl.col("threads").first(), most_ns=busy.max()
    )
    known = (pl.col("busy_samples") >= FEW_FOR_BALANCE) & (busy > 0)
    mean_ns = busy / pl.col("threads")
    return (
        times_ns.select("layer", "time_ns")
        .join(sums, on="layer", how="inner")
        .with_columns(
            efficiency=_possible(busy / (pl.col("threads") * pl.col("time_ns").replace(0, None))),
            imbalance=pl.when(known).then(pl.col("most_ns") / mean_ns - 1),
        )
        .drop("most_ns", "busy_ns", "busy_samples")
        .sort("layer")
    )


def _possible(efficiency: pl.Expr) -> pl.Expr:
    """Null where it is more than there can be: a module that works beside the threads that it has begun has, of that
    time, none of its own."""
    return pl.when(efficiency.is_null() | (efficiency <= MOST_EFFICIENT)).then(efficiency)


def off_cpu(
    switches: pl.DataFrame, spans: pl.DataFrame, layers: pl.DataFrame, iterations: tuple[int, ...]
) -> pl.DataFrame:
    """One row a layer (and ``UNATTRIBUTED``) and thread: for how long it was off a processor while the layer ran.

    ``times`` how often, ``off_cpu_ns`` in all, of which ``preempted_ns`` because others ran in its place and
    ``waited_ns`` because it had nothing to do or waited. One absence over several layers counts in each of
    them. Rows without a begin or an end are left out: nobody knows whether the thread was there.
    """
    owners = inference_spans(spans, layers).filter(pl.col("iteration").is_in(list(iterations)))
    closed = switches.drop_nulls(["out_ns", "in_ns"])
    interval, span, shared = Timeline.of(owners).overlaps(closed["out_ns"].to_numpy(), closed["in_ns"].to_numpy())
    pieces = pl.DataFrame(
        {
            "layer": owners["path"].gather(span),
            "tid": closed["tid"].gather(interval),
            "preempted": closed["preempted"].gather(interval),
            "interval": interval,
            "off_cpu_ns": shared,
        }
    )
    return (
        pieces.group_by("layer", "tid")
        .agg(
            times=pl.col("interval").n_unique().cast(pl.Int64),
            off_cpu_ns=pl.col("off_cpu_ns").sum(),
            preempted_ns=pl.col("off_cpu_ns").filter("preempted").sum(),
            waited_ns=pl.col("off_cpu_ns").filter(~pl.col("preempted")).sum(),
        )
        .sort("layer", "tid")
    )


def contaminated_layers(moments: pl.DataFrame, few: int) -> list[str]:
    """The layers (and ``WHOLE``) of whose processor time so much is waiting in the OpenMP runtime that hardware
    counters say little of their own code; of those with at least ``few`` samples. ``moments`` as ``thread_states``
    makes them."""
    on = moments.filter("sampled")
    sums = (pl.len().alias("samples"), pl.col("ns").filter(pl.col("state") == WAITING).sum() / pl.col("ns").sum())
    rows = pl.concat([on.group_by("layer").agg(*sums), on.select(pl.lit(WHOLE).alias("layer"), *sums)])
    return sorted(rows.filter((pl.col("samples") >= few) & (pl.col("ns") >= CONTAMINATED))["layer"])


def largest_loss(
    states: Iterable[tuple[int, str, float, int]],
    elapsed_ns: float,
    team: Set[int],
    asked: int,
    cause: tuple[int, str] | None = None,
) -> str | None:
    """In words, what a layer loses most of its threads' time to, and how much of it; None where they are at work, or
    where the loss might be imbalance and fewer than ``FEW_FOR_BALANCE`` samples tell which thread did how much.

    ``states`` (tid, state, nanoseconds, samples): what each thread did in the layer, as ``thread_states.closed`` makes
    it; ``elapsed_ns`` its wall time; ``team``: the calling thread and those that wait for one another; ``asked``: how
    many the workload runs with. The threads are those whose efficiency is told as well (``sharing``): where more than
    were asked for share the work, it is these; where fewer are there, the time of the others is a loss of its own, and
    no imbalance among those that are. ``cause``: the calling thread and what it waits for on the critical path, where
    that is worth naming: this is the loss then, and not what follows from it (that one works alone meanwhile, or that
    there are fewer threads than were asked for), unless others than the calling thread share the work.
    """
    found = list(states)
    rows = [(tid, state, ns) for tid, state, ns, _ in found]
    members = _members(rows, team, asked)
    known = sum(number for tid, state, _, number in found if tid in members and state == BUSY) >= FEW_FOR_BALANCE
    there = _there(rows, members, elapsed_ns)
    threads = max(asked, at_a_time(there))
    whole_ns = threads * elapsed_ns
    busy: dict[int, float] = {}
    lost: dict[str, float] = {}
    for tid, state, ns in rows:
        if tid not in members:
            continue
        if state == BUSY:
            busy[tid] = busy.get(tid, 0.0) + ns
        else:
            lost[state] = lost.get(state, 0.0) + ns
    busy_ns, most_ns = math.fsum(busy.values()), max(busy.values(), default=0.0)
    alone = busy_ns and most_ns >= max(SINGLE * busy_ns, MOSTLY * elapsed_ns)
    if cause is not None and (alone or cause[0] in members):
        waited_ns = math.fsum(ns for tid, state, ns in rows if state == cause[1] and tid in {*members, cause[0]})
        return f"{cause[1]}: {waited_ns / whole_ns:.0%}"
    if threads > 1 and alone and known:
        return f"single-threaded: {most_ns / busy_ns:.0%} on one of {threads}"
    waits_ns = sum(lost.pop(state, 0.0) for state in TEAM_WAITS)
    busiest_ns = most_ns if known else busy_ns  # one may have done all of it
    imbalance_ns = min(waits_ns, max(0.0, there * busiest_ns - busy_ns))
    losses = {
        **{state: ns for state, ns in sorted(lost.items()) if state not in NOT_A_LOSS},
        IMBALANCE: imbalance_ns,
        BARRIER_LATENCY: waits_ns - imbalance_ns,
        UNUSED: max(0.0, threads - there) * elapsed_ns if there else 0.0,
    }
    worst, worst_ns = max(losses.items(), key=lambda item: item[1])
    told = worst_ns >= WORTH_NAMING * whole_ns and (known or worst != IMBALANCE)
    return f"{worst}: {worst_ns / whole_ns:.0%}" if told else None


def _there(rows: Iterable[tuple[int, str, float]], members: Set[int], elapsed_ns: float) -> float:
    """How many of the members were there at a time, on average."""
    absent_ns = {tid: 0.0 for tid, _, _ in rows if tid in members}
    for tid, state, ns in rows:
        if tid in members and state == ABSENT:
            absent_ns[tid] += ns
    return math.fsum(1 - min(1.0, ns / elapsed_ns) for ns in absent_ns.values())


def _members(states: Iterable[tuple[int, str, float]], team: Set[int], asked: int) -> set[int]:
    """The threads whose time a layer has: those that share its work, also where they are more than were asked for, or
    no team (a pool, for which the calling thread only waits); where they are fewer, with the busiest of the team."""
    busy: dict[int, float] = {}
    for tid, state, ns in states:
        busy[tid] = busy.get(tid, 0.0) + (ns if state == BUSY else 0.0)
    ranked = sorted(busy, key=lambda tid: (-busy[tid], tid))
    share = [tid for tid in ranked if busy[tid] >= SHARES * busy[ranked[0]] > 0]
    idle = [tid for tid in ranked if tid in team and tid not in share]
    return {*share, *idle[: max(0, asked - len(share))]}
