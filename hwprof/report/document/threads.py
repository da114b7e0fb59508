"""The document's part on threads and waiting, from a run's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from hwprof.analysis.critical_path import path_moments
from hwprof.analysis.kernel_cpi import FEW
from hwprof.analysis.missing import Missing
from hwprof.analysis.sampled_pass import SampledPass
from hwprof.analysis.states import ABSENT, BUSY, PREEMPTED, TEAM_WAITS, UNSAMPLED, WAITING
from hwprof.analysis.statistics import wilson
from hwprof.analysis.thread_states import Inference, closed, moments
from hwprof.analysis.waiting import MIXED, finding, mixed_layers
from hwprof.report.document.threads_schema import PathPart, ThreadTimes, Waiting, WaitingIteration, WaitingLayer
from hwprof.run.directory import RunDirectory

FEW_FOR_SHARES: Final = 30
"""Samples of a layer, with fewer of which no share of waiting is told."""

OWN_FIELDS: Final = (BUSY, WAITING, PREEMPTED, UNSAMPLED, ABSENT)
"""States that have a field of their own; the others are reasons."""

CALLING, TEAM, OTHER = "calling", "team", "other"


@dataclass(frozen=True)
class _Threads:
    """What each thread did, and where the path lay, in the pass's iterations."""

    taken: SampledPass
    calling_tid: int
    moments: pl.DataFrame
    path: pl.DataFrame
    elapsed: pl.DataFrame

    @property
    def iterations(self) -> int:
        return len(self.taken.iterations)

    @property
    def elapsed_ns(self) -> float:
        return float(self.elapsed["elapsed_ns"].sum())

    def times(self, by: str) -> pl.DataFrame:
        """``tid``, ``by``, ``state``, ``ns``, ``samples``."""
        return closed(self.moments, self.elapsed, [by])

    def path_times(self, by: str) -> pl.DataFrame:
        """``on``, ``by``, ``doing``, ``ns``, ``samples``; the calling thread's own state where none is told."""
        rows = closed(self.path, self.elapsed, [by])
        return (
            rows.with_columns(pl.col("on").fill_null(self.calling_tid), pl.col("doing").fill_null(pl.col("state")))
            .group_by(by, "on", "doing")
            .agg(pl.col("ns", "samples").sum())
        )

    def team(self) -> set[int]:
        """The threads that wait for one another in the OpenMP runtime."""
        waits = self.moments.filter(pl.col("state").is_in(list(TEAM_WAITS)))
        return set(waits["tid"].unique().to_list())


def build(run: RunDirectory, taken: SampledPass) -> Waiting | None:
    """Of the pass that the samples are of; None where its calling thread is not among them."""
    calling_tid = taken.record.main_tid
    if calling_tid is None or calling_tid not in taken.inside["tid"]:
        return None
    threads = _of(run, taken, calling_tid)
    if not threads.elapsed_ns:
        return None
    whole = threads.path_times("iteration")
    times = _times(run, threads, whole)
    asked = taken.threads
    busy_ns = sum(one.busy_ns for one in times if one.role != OTHER)
    return Waiting(
        name=taken.record.name,
        iterations=threads.iterations,
        threads_asked=asked,
        elapsed_ns=threads.elapsed_ns / threads.iterations,
        efficiency=busy_ns * threads.iterations / (asked * threads.elapsed_ns) if asked else None,
        period_ns=float(taken.inside["cpu_ns"].median() or 0),  # type: ignore[arg-type]
        mixed_share=MIXED,
        mixed_layers=mixed_layers(threads.moments, FEW_FOR_SHARES),
        few_samples=FEW,
        reasons_missing=_reasons_missing(taken, times),
        threads=times,
        critical_path=_parts(whole, None, threads.iterations).get(None, []),
        layers=_layers(threads),
        by_iteration=_by_iteration(threads, whole),
    )


def _of(run: RunDirectory, taken: SampledPass, calling_tid: int) -> _Threads:
    switches = run.scan("switches").filter(pl.col("pass") == taken.record.name).collect()
    inference = Inference.of(taken.spans, taken.layers, taken.iterations)
    found = moments(taken.inside, switches, inference)
    return _Threads(taken, calling_tid, found, path_moments(found, calling_tid), inference.elapsed())


def _times(run: RunDirectory, threads: _Threads, whole: pl.DataFrame) -> list[ThreadTimes]:
    known = run.scan("threads").filter(pl.col("pass") == threads.taken.record.name).collect()
    names = dict(known.select("tid", "name").iter_rows())
    team, number = threads.team(), threads.iterations
    on_path = dict(whole.group_by("on").agg(pl.col("ns").sum()).iter_rows())
    sums = threads.times("iteration").group_by("tid", "state").agg(pl.col("ns", "samples").sum())
    found = []
    for (tid,), rows in sums.group_by(["tid"]):
        states = {state: ns / number for state, ns in rows.select("state", "ns").sort("state").iter_rows()}
        path_ns = on_path.get(tid, 0.0) / number
        found.append(
            ThreadTimes(
                tid=int(str(tid)),
                name=names.get(tid),
                role=CALLING if tid == threads.calling_tid else TEAM if tid in team else OTHER,
                samples=int(rows["samples"].sum()),
                **{f"{state}_ns": states.get(state, 0.0) for state in OWN_FIELDS},
                blocked_ns={state: ns for state, ns in states.items() if state not in OWN_FIELDS},
                path_ns=path_ns,
                path_share=path_ns * number / threads.elapsed_ns,
            )
        )
    order = {CALLING: 0, TEAM: 1, OTHER: 2}
    return sorted(found, key=lambda one: (order[one.role], -one.busy_ns, one.tid))


def _parts(path: pl.DataFrame, by: str | None, iterations: int) -> dict[Any, list[PathPart]]:
    """Of ``on``, ``doing``, ``ns`` and ``samples``: the parts of each group, longest first; without ``by`` there is one
    group, None."""
    grouped = path.with_columns(group=pl.col(by) if by is not None else pl.lit(None))
    sums = grouped.group_by("group", "on", "doing").agg(pl.col("ns", "samples").sum()).filter(pl.col("ns") > 0)
    shares = sums.with_columns(
        share=pl.col("ns") / pl.col("ns").sum().over("group"), draws=pl.col("samples").sum().over("group")
    )
    low, high = wilson(pl.col("share"), pl.col("draws").clip(1))
    rows = shares.with_columns(low=low, high=high).sort("ns", "on", "doing", descending=[True, False, False])
    found: dict[Any, list[PathPart]] = {}
    for row in rows.iter_rows(named=True):
        found.setdefault(row["group"], []).append(
            PathPart(
                tid=row["on"],
                state=row["doing"],
                ns=row["ns"] / iterations,
                share=row["share"],
                share_low=row["low"],
                share_high=row["high"],
                samples=row["samples"],
            )
        )
    return found


def _layers(threads: _Threads) -> list[WaitingLayer]:
    """Those that the calling thread was often enough sampled in."""
    own = threads.moments.filter((pl.col("tid") == threads.calling_tid) & pl.col("sampled"))
    counts = dict(own.group_by("layer").agg(pl.len()).filter(pl.col("len") >= FEW).iter_rows())
    elapsed = dict(threads.elapsed.group_by("layer").agg(pl.col("elapsed_ns").sum()).iter_rows())
    parts = _parts(threads.path_times("layer"), "layer", threads.iterations)
    members = [threads.calling_tid, *threads.team()]
    states = threads.times("layer").filter(pl.col("tid").is_in(members)).partition_by("layer", as_dict=True)
    found = [
        WaitingLayer(
            path=layer,
            elapsed_ns=elapsed[layer] / threads.iterations,
            samples=samples,
            critical_path=parts[layer],
            finding=finding(states[(layer,)], elapsed[layer], threads.taken.threads or 1),
        )
        for layer, samples in counts.items()
    ]
    return sorted(found, key=lambda one: (-one.elapsed_ns, one.path))


def _by_iteration(threads: _Threads, whole: pl.DataFrame) -> list[WaitingIteration]:
    elapsed = threads.elapsed.group_by("iteration").agg(pl.col("elapsed_ns").sum()).sort("iteration")
    parts = _parts(whole, "iteration", 1)
    return [
        WaitingIteration(iteration=iteration, elapsed_ns=ns, critical_path=parts[iteration])
        for iteration, ns in elapsed.iter_rows()
    ]


def _reasons_missing(taken: SampledPass, times: Sequence[ThreadTimes]) -> Missing | None:
    if taken.detail.get("reasons", True) or not any("blocked" in one.blocked_ns for one in times):
        return None
    return Missing(
        "reasons",
        "threads leave their processors in the kernel, which this user may not sample",
        "sudo sysctl kernel.perf_event_paranoid=1",
    )
