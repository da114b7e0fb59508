"""Made-up threads: what each did, as samples and switches tell it, and what is found of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import polars as pl

from hwprof.analysis.critical_path import path_moments
from hwprof.analysis.lifetimes import lives
from hwprof.analysis.states import ABSENT, BLOCKED, BUSY, PREEMPTED, WAITING
from hwprof.analysis.thread_states import Inference, absences, closed, moments
from hwprof.run.schema import conform, empty

MAIN, WORKER, OTHER = 1, 2, 3
MS = 1_000_000
PERIOD = MS


AT_WORK = pl.DataFrame(schema={"tid": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64, "state": pl.String})
"""Absences of threads that never were."""

Stretch = tuple[int, str]
"""(nanoseconds, state): of a thread, one after the other; a state that is no sample's is off a processor."""


def spans_of(
    calls: list[tuple[str, int, int]],
    iterations: list[tuple[int, int]],
    operators: Sequence[tuple[str, int, int]] = (),
    callers: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """Layers' calls (path, begin, end), operators', and inferences; ``callers``: of layers that others call than the
    main thread."""
    rows = [("layer", path, begin, end) for path, begin, end in calls]
    rows += [("op", name, begin, end) for name, begin, end in operators]
    rows += [("stage", "inference", begin, end) for begin, end in iterations]
    rows += [("iteration", "", begin, end) for begin, end in iterations]

    def iteration(begin: int) -> int:
        return max(number for number, (start, _) in enumerate(iterations) if start <= begin)

    made = [
        {
            "kind": kind,
            "path": path,
            "begin_ns": begin,
            "end_ns": end,
            "iteration": iteration(begin),
            "tid": (callers or {}).get(path, MAIN),
        }
        for kind, path, begin, end in rows
    ]
    return conform("spans", pl.DataFrame(made).with_columns(pid=pl.lit(MAIN)))


def layers_of(calls: list[tuple[str, int, int]]) -> pl.DataFrame:
    paths = sorted({path for path, _, _ in calls})
    leaves = [path != "" and not any(other.startswith(f"{path}.") for other in paths) for path in paths]
    return pl.DataFrame({"path": paths, "leaf": leaves})


def recorded(threads: dict[int, list[Stretch]], period_ns: int = PERIOD, phase: float = 0.5) -> tuple[Any, Any]:
    """(samples, switches) of threads that begin at 0: a sample every ``period_ns`` of processor time."""
    samples, switches = [], []
    for tid, stretches in threads.items():
        now, cpu_ns, due = 0, 0, int(period_ns * phase)
        for ns, state in stretches:
            if state in (BUSY, WAITING):
                while due <= cpu_ns + ns:
                    code = "openmp" if state == WAITING else "torch"
                    samples.append({"tid": tid, "time_ns": now + due - cpu_ns, "cpu_ns": period_ns, "code": code})
                    due += period_ns
                cpu_ns += ns
            elif ns and state != ABSENT:
                reason = state if state not in (PREEMPTED, BLOCKED) else None
                switches.append(
                    {"tid": tid, "out_ns": now, "in_ns": now + ns, "preempted": state == PREEMPTED, "reason": reason}
                )
            now += ns
    frame = pl.DataFrame(
        samples, schema={"tid": pl.Int32, "time_ns": pl.Int64, "cpu_ns": pl.Int64, "code": pl.String}
    ).sort("time_ns")
    schema = {"tid": pl.Int32, "out_ns": pl.Int64, "in_ns": pl.Int64, "preempted": pl.Boolean, "reason": pl.String}
    return frame, conform("switches", pl.DataFrame(switches, schema=schema))


def lived(threads: dict[int, list[Stretch]]) -> pl.DataFrame:
    """The table ``lifetimes``: of threads that are absent first or last, their birth or end."""
    rows = []
    for tid, stretches in threads.items():
        edges = list(accumulate((ns for ns, _ in stretches), initial=0))
        there = [place for place, (_, state) in enumerate(stretches) if state != ABSENT]
        first, last = (there[0], there[-1] + 1) if there else (0, 0)
        born_ns, ended_ns = edges[first] if first else None, edges[last] if last < len(stretches) else None
        rows.append({"tid": tid, "born_ns": born_ns, "ended_ns": ended_ns})
    schema = {"tid": pl.Int32, "born_ns": pl.Int64, "ended_ns": pl.Int64}
    return conform("lifetimes", pl.DataFrame(rows, schema=schema))


class Run:
    """What was found of made-up threads."""

    def __init__(
        self,
        threads: dict[int, list[Stretch]],
        calls: list[tuple[str, int, int]],
        iterations: list[tuple[int, int]],
        watched: bool = True,
        **how: Any,
    ) -> None:
        """``watched``: whether threads' creations and ends were recorded."""
        taken, self.switches = recorded(threads, **how)
        spans, layers = spans_of(calls, iterations), layers_of(calls)
        lifetimes = lived(threads) if watched else empty("lifetimes")
        self.lives = lives(taken, self.switches, lifetimes, MAIN)
        away = absences(self.switches, self.lives, taken, spans)
        self.inference = Inference.of(spans, layers, range(len(iterations)), away)
        rows, places = self.inference.owners, self.inference.timeline.at(taken["time_ns"].to_numpy())
        inside = taken.with_columns(place=pl.Series(places)).filter(pl.col("place") >= 0)
        self.sampled = inside.with_columns(
            rows["path"].gather(inside["place"]).alias("layer"), rows["iteration"].gather(inside["place"])
        )
        self.moments = moments(self.sampled, away, self.inference)
        self.elapsed = self.inference.elapsed()
        self.path = path_moments(self.moments, MAIN, away)

    def states(self, tid: int) -> dict[str, float]:
        """A thread's time by state."""
        rows = closed(self.moments, self.elapsed, ["iteration"]).filter(pl.col("tid") == tid)
        return dict(rows.group_by("state").agg(pl.col("ns").sum()).iter_rows())

    def on_path(self) -> dict[tuple[int | None, str | None], float]:
        """The path's time by thread and what it did there."""
        rows = closed(self.path, self.elapsed, ["iteration"]).group_by("on", "doing").agg(pl.col("ns").sum())
        return {(on, doing): ns for on, doing, ns in rows.iter_rows()}


def long_layer(threads: dict[int, list[Stretch]], length_ns: int = 100 * MS, **how: Any) -> Run:
    return Run(threads, [("a", 0, length_ns)], [(0, length_ns)], **how)


def near(found: Mapping[Any, float], expected: Mapping[Any, float], slack_ns: float = 2 * MS) -> bool:
    return all(abs(found.get(key, 0) - expected.get(key, 0)) <= slack_ns for key in found.keys() | expected.keys())
