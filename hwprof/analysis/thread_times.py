"""What each thread did through the inference, which of them it waited for, and what layers lose their threads' time to.

All of the pass that the samples are of. Times are those of one iteration, on average; of a thread that was not there in
all of them, on average of those that it was there in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import polars as pl

from hwprof.analysis.critical_path import path_moments
from hwprof.analysis.lanes import in_lanes
from hwprof.analysis.parallelism import SHARES, WORTH_NAMING, at_a_time, contaminated_layers, largest_loss
from hwprof.analysis.sampled_pass import FEW_FOR_SHARES, SampledPass
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.states import (
    ABSENT,
    BARRIER_LATENCY,
    BLOCKED,
    BUSY,
    PREEMPTED,
    TEAM_WAITS,
    UNKNOWN,
    UNOBSERVED,
    UNSAMPLED,
    WAITING,
)
from hwprof.analysis.statistics import wilson
from hwprof.analysis.team import CALLING, OTHER, TEAM
from hwprof.analysis.thread_states import Inference, absences, callers_moments, closed, moments, unsampled_waits

ON_CPU: Final = (BUSY, WAITING, UNSAMPLED)
"""States whose times samples tell; those of the others are exact."""

OWN_FIELDS: Final = (BUSY, WAITING, PREEMPTED, UNSAMPLED, UNKNOWN, ABSENT)
"""States that have a field of their own; the others are reasons."""

NO_CAUSE: Final = frozenset({*OWN_FIELDS, *TEAM_WAITS, BARRIER_LATENCY, UNOBSERVED, BLOCKED})
"""States of the path that the calling thread itself, its team or other programs are behind, or nobody knows what."""

Parts = dict[Any, list[dict[str, Any]]]


@dataclass(frozen=True)
class ThreadTimes:
    """What each thread did, and where the path lay, in the pass's iterations."""

    taken: SampledPass
    calling_tid: int
    moments: pl.DataFrame
    callers: pl.DataFrame  # those of the thread that made each call, as ``callers_moments``
    callers_elapsed: pl.DataFrame  # as ``Inference.callers_elapsed``
    path: pl.DataFrame
    elapsed: pl.DataFrame
    waits: pl.DataFrame  # of threads without a sample, as ``thread_states.unsampled_waits``

    @property
    def iterations(self) -> int:
        """How many."""
        return len(self.taken.iterations)

    @cached_property
    def elapsed_ns(self) -> float:
        """Of the inference, in all iterations."""
        return float(self.elapsed["elapsed_ns"].sum())

    @cached_property
    def contaminated(self) -> list[str]:
        """The layers whose counters are contaminated by spinning."""
        return contaminated_layers(self.moments, FEW_FOR_SHARES)

    @cached_property
    def by_thread(self) -> list[dict[str, Any]]:
        """Each thread's times in an iteration, on average of those that it was there in: the calling thread first, then
        its team, most busy first."""
        on_path = dict(self._whole_path.group_by("on").agg(pl.col("ns").sum()).iter_rows())
        found = [self._of_thread(tid, rows, on_path.get(tid, 0.0)) for tid, rows in self._while_there()]
        order = {CALLING: 0, TEAM: 1, OTHER: 2}
        found.sort(key=lambda one: (order[one["role"]], -one["busy_ns"], one["tid"]))
        sharing = self._sharing(found)
        return [{**one, "shares_work": one["tid"] in sharing} for one in found]

    def _while_there(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """Each thread's ``iteration``, ``elapsed_ns``, ``state``, ``ns`` and ``samples`` in the iterations in which it
        was not absent all of the time."""
        elapsed = self.elapsed.group_by("iteration").agg(pl.col("elapsed_ns").sum())
        absent_ns = pl.col("ns").filter(pl.col("state") == ABSENT).sum().over("tid", "iteration")
        times = self._times("iteration").join(elapsed, on="iteration")
        there = times.filter(absent_ns < pl.col("elapsed_ns")).sort("tid", "iteration", "state")
        for (tid,), rows in there.group_by(["tid"], maintain_order=True):
            yield tid, rows

    def _of_thread(self, tid: int, rows: pl.DataFrame, path_ns: float) -> dict[str, Any]:
        number = rows["iteration"].n_unique()
        elapsed_ns = float(rows.unique("iteration")["elapsed_ns"].sum())
        sums = rows.group_by("state").agg(pl.col("ns").sum() / number).sort("state")
        own: dict[str, float] = dict(sums.iter_rows())
        names = dict(self.taken.known_threads.select("tid", "name").iter_rows())
        return {
            "tid": int(tid),
            "name": names.get(tid),
            "role": self.taken.role(tid),
            "iterations": number,
            "elapsed_ns": elapsed_ns / number,
            "samples": int(rows["samples"].sum()),
            **{f"{state}_ns": own.get(state, 0.0) for state in OWN_FIELDS},
            "blocked_ns": {state: ns for state, ns in own.items() if state not in OWN_FIELDS},
            "path_ns": path_ns / number,
            "path_share": path_ns / elapsed_ns,
        }

    def _sharing(self, threads: list[dict[str, Any]]) -> set[int]:
        """Which of the threads share the inference's work: those that were found busy (a pool, threads one after the
        other), and where these are fewer at a time than the workload runs with, the calling one and its team, the
        busiest of them first."""
        lanes, busy_ns = self.taken.lanes, dict[int, float]()
        for one in threads:
            lane = lanes.get(one["tid"], one["tid"])
            busy_ns[lane] = busy_ns.get(lane, 0.0) + one["busy_ns"] * one["iterations"]
        most_ns = max(busy_ns.values(), default=0.0)
        busy = {lane for lane, ns in busy_ns.items() if ns >= SHARES * most_ns > 0}
        own = {lanes.get(one["tid"], one["tid"]) for one in threads if one["role"] != OTHER} - busy
        asked = self.taken.threads or len(threads)
        busy |= set(sorted(own, key=lambda lane: (-busy_ns[lane], lane))[: max(0, asked - len(busy))])
        return {one["tid"] for one in threads if lanes.get(one["tid"], one["tid"]) in busy}

    @property
    def those_that_share(self) -> list[dict[str, Any]]:
        """The rows of ``by_thread`` that share the inference's work."""
        return [one for one in self.by_thread if one["shares_work"]]

    @property
    def unsampled_threads(self) -> int:
        """How many threads waited in the inference without a sample in it: they hardly worked."""
        return self.waits["tid"].n_unique()

    def unsampled_blocked_ns(self) -> dict[str, float]:
        """For how long, by what they waited for, in an iteration on average."""
        sums = self.waits.group_by("state").agg(pl.col("ns").sum() / self.iterations).sort("state")
        return dict(sums.iter_rows())

    def threads_sharing(self) -> int | None:
        """How many threads share the inference's work: as many as the workload runs with, or as were found busy. Those
        that were there one after the other are as many as were there at a time, on average."""
        if not self.taken.threads:
            return None
        sharing = self.those_that_share
        there_ns = math.fsum((one["elapsed_ns"] - one["absent_ns"]) * one["iterations"] for one in sharing)
        number = len({self.taken.lanes.get(one["tid"], one["tid"]) for one in sharing})
        return max(self.taken.threads, min(at_a_time(there_ns / self.elapsed_ns), number))

    def efficiency(self) -> float | None:
        """Busy time of those that share the work over their number x elapsed time."""
        number = self.threads_sharing()
        if not number:
            return None
        busy_ns = math.fsum(one["busy_ns"] * one["iterations"] for one in self.those_that_share)
        return busy_ns / (number * self.elapsed_ns)

    def iteration_states(self) -> dict[int, list[dict[str, Any]]]:
        """What each thread did in each of the iterations that it was there in: ``tid``, ``states`` (ns)."""
        found: dict[int, list[dict[str, Any]]] = {}
        for tid, rows in self._while_there():
            for (iteration,), own in rows.group_by(["iteration"], maintain_order=True):
                states = dict(own.filter(pl.col("ns") > 0).select("state", "ns").iter_rows())
                found.setdefault(int(iteration), []).append({"tid": int(tid), "states_ns": states})
        return found

    def period_ns(self) -> float:
        """Processor time between two samples of a thread."""
        return float(self.taken.inside["cpu_ns"].median() or 0)  # type: ignore[arg-type]

    def critical_path(self) -> list[dict[str, Any]]:
        """Its parts, longest first: ``tid, state, cause, ns, share, share_low, share_high, samples``."""
        return self._parts(self._whole_path, None, self.iterations).get(None, [])

    def layers(self) -> list[dict[str, Any]]:
        """The layers that were often enough sampled, in whichever threads, longest first, each with its path. That is
        empty where the calling thread's own samples are few, unless it was off its processor, which is exact."""
        own = (pl.col("tid") == self.calling_tid).sum().cast(pl.Int64)
        sampled = self.moments.filter("sampled").group_by("layer").agg(pl.len(), own=own)
        counts = dict(sampled.filter(pl.col("len") >= FEW_SAMPLES).select("layer", "own").iter_rows())
        elapsed = dict(self.elapsed.group_by("layer").agg(pl.col("elapsed_ns").sum()).iter_rows())
        parts = self._parts(self._path_times("layer"), "layer", self.iterations)
        lanes = self.taken.lanes
        team = {lanes.get(tid, tid) for tid in (self.calling_tid, *self.taken.team)}
        states: dict[str, list[tuple[int, str, float, int]]] = {}
        times = self._times("layer").filter(pl.col("layer").is_in(list(counts)))
        for layer, tid, state, ns, samples in times.select("layer", "tid", "state", "ns", "samples").iter_rows():
            states.setdefault(layer, []).append((tid, state, ns, samples))
        found = [
            {
                "path": layer,
                "elapsed_ns": elapsed[layer] / self.iterations,
                "samples": samples,
                "critical_path": parts[layer] if self._is_known(samples, states[layer], elapsed[layer]) else [],
                "largest_loss": largest_loss(
                    in_lanes(states[layer], lanes, elapsed[layer]),
                    elapsed[layer],
                    team,
                    self.taken.threads or 1,
                    self._cause(parts[layer]),
                ),
            }
            for layer, samples in counts.items()
        ]
        return sorted(found, key=lambda one: (-one["elapsed_ns"], one["path"]))

    def _cause(self, path: list[dict[str, Any]]) -> tuple[int, str] | None:
        """The calling thread and what it waits for through most of a path, where that is worth naming. Waits for its
        team are no cause of their own: they are imbalance, or latency."""
        shares: dict[str, float] = {}
        for part in path:
            own = part["state"] if part["tid"] == self.calling_tid and part["state"] not in NO_CAUSE else None
            cause = part["cause"] or own
            if cause is not None:
                shares[cause] = shares.get(cause, 0.0) + part["share"]
        most = max(shares, key=lambda cause: (shares[cause], cause), default=None)
        return (self.calling_tid, most) if most is not None and shares[most] >= WORTH_NAMING else None

    def _is_known(self, samples: int, states: list[tuple[int, str, float, int]], elapsed_ns: float) -> bool:
        """Whether so many samples of the calling thread tell what it did in a layer, of which the path is made."""
        on_ns = math.fsum(ns for tid, state, ns, _ in states if tid == self.calling_tid and state in ON_CPU)
        return samples >= FEW_SAMPLES or on_ns < WORTH_NAMING * elapsed_ns

    def by_iteration(self) -> list[dict[str, Any]]:
        """Each iteration's critical path, and what each thread did in it."""
        elapsed = self.elapsed.group_by("iteration").agg(pl.col("elapsed_ns").sum()).sort("iteration")
        parts, states = self._parts(self._whole_path, "iteration", 1), self.iteration_states()
        return [
            {
                "iteration": iteration,
                "elapsed_ns": float(ns),
                "critical_path": parts[iteration],
                "threads": states.get(iteration, []),
            }
            for iteration, ns in elapsed.iter_rows()
        ]

    def _times(self, by: str) -> pl.DataFrame:
        """``tid``, ``by``, ``state``, ``ns``, ``samples``."""
        return closed(self.moments, self.elapsed, [by])

    @cached_property
    def _whole_path(self) -> pl.DataFrame:
        return self._path_times("iteration")

    def _path_times(self, by: str) -> pl.DataFrame:
        """``on``, ``by``, ``doing``, ``cause``, ``ns``, ``samples``; the calling thread's own state where none is
        told."""
        rows = closed(self.path, self.elapsed, [by])
        return (
            rows.with_columns(pl.col("on").fill_null(self.calling_tid), pl.col("doing").fill_null(pl.col("state")))
            .group_by(by, "on", "doing", "cause")
            .agg(pl.col("ns", "samples").sum())
        )

    def _parts(self, path: pl.DataFrame, by: str | None, iterations: int) -> Parts:
        """Of ``on``, ``doing``, ``cause``, ``ns``, ``samples``: the parts of each group, longest first; without ``by``
        there is one group, None."""
        grouped = path.with_columns(group=pl.col(by) if by is not None else pl.lit(None))
        sums = (
            grouped.group_by("group", "on", "doing", "cause")
            .agg(pl.col("ns", "samples").sum())
            .filter(pl.col("ns") > 0)
        )
        shares = sums.with_columns(
            share=pl.col("ns") / pl.col("ns").sum().over("group"), draws=pl.col("samples").sum().over("group")
        )
        low, high = wilson(pl.col("share"), pl.col("draws").clip(1))
        rows = shares.with_columns(pl.col("ns") / iterations, share_low=low, share_high=high).sort(
            "ns", "on", "doing", "cause", descending=[True, False, False, False]
        )
        found: Parts = {}
        for row in _parts_of(rows):
            found.setdefault(row.pop("group"), []).append(row)
        return found


def thread_times(taken: SampledPass) -> ThreadTimes | None:
    """Of the pass that the samples are of; None where its calling thread is not among them."""
    calling_tid = taken.record.main_tid
    if calling_tid is None or calling_tid not in taken.inside["tid"]:
        return None
    away = absences(taken.switches, taken.lives, taken.taken, taken.spans)
    inference = Inference.of(taken.spans, taken.modules, taken.iterations, away)
    found = moments(taken.inside, away, inference)
    path = path_moments(found, calling_tid, away)
    waits = unsampled_waits(found, away, inference)
    times = ThreadTimes(
        taken=taken,
        calling_tid=calling_tid,
        moments=found,
        callers=callers_moments(taken.inside, found, away, inference),
        callers_elapsed=inference.callers_elapsed(),
        path=path,
        elapsed=inference.elapsed(),
        waits=waits,
    )
    return times if times.elapsed_ns else None


def _parts_of(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    columns = ("group", "ns", "share", "share_low", "share_high", "samples", "cause")
    yield from rows.select(*columns, tid="on", state="doing").iter_rows(named=True)
