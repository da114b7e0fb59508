"""What stages, layers and layer types have in common, from the analysis's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from hwprof.analysis import layers as analysis


class Times(msgspec.Struct, kw_only=True, frozen=True):
    """Statistics of a repeated time; the spread is the median absolute deviation, which one repetition has none of.
    Provenance: measured (clock)."""

    repetitions: int
    median_ns: float
    mad_ns: float | None
    mean_ns: float
    std_ns: float | None
    min_ns: float
    max_ns: float


class Counter(msgspec.Struct, kw_only=True, frozen=True):
    """An event in one iteration: medians over iterations. Where ``running_share`` is below 1 the kernel multiplexed
    the counter, and the values are scaled up by enabled / running time."""

    value: float | None  # over all threads
    mad: float | None  # of one iteration there is none
    main: float | None  # the thread that called
    workers: float | None  # all others
    running_share: float
    iterations: int
    provenance: str


class ThreadParts(msgspec.Struct, kw_only=True, frozen=True):
    """A metric of the calling thread and of all others."""

    main: float | None
    workers: float | None


class Figures(msgspec.Struct, kw_only=True, frozen=True):
    """What stages, layers and layer types have in common."""

    share: float | None  # of the inference; of a stage: of the iterations
    counters: dict[str, Counter]
    metrics: dict[str, float | None]
    by_thread: dict[str, ThreadParts]  # the metrics that have parts by thread
    uncounted_ns: float | None  # CPU time of code that an instrumented pass did not count: so its counts are null
    uncounted_caller_ns: float | None  # of calls by threads of which nothing was counted: so its counts are null


def times(row: dict[str, Any], prefix: str, repetitions: str) -> Times | None:
    """A row's statistics of a time; None without a value."""
    if row.get(f"{prefix}_median_ns") is None:
        return None
    figures = {f"{name}_ns": row[f"{prefix}_{name}_ns"] for name in ("median", "mad", "mean", "std", "min", "max")}
    return Times(repetitions=row[repetitions], **figures)


def by_owner(figures: analysis.Figures) -> dict[str, dict[str, Any]]:
    """Of every owner the fields ``counters``, ``metrics``, ``by_thread`` and what its counts lack."""
    names = ("value", "mad", "main", "workers", "running_share", "iterations", "provenance")
    counters: dict[str, dict[str, Counter]] = {}
    for owner, event, *values in figures.counters.select("owner", "event", *names).iter_rows():
        counters.setdefault(owner, {})[event] = Counter(**dict(zip(names, values, strict=True)))
    columns = [name for name in figures.metrics.columns if name != "owner" and "@" not in name]
    halves = dict.fromkeys(name.partition("@")[0] for name in figures.metrics.columns if "@" in name)
    found = {}
    for row in figures.metrics.iter_rows(named=True):
        found[row["owner"]] = {
            "counters": counters.get(row["owner"], {}),
            "metrics": {name: row[name] for name in columns},
            "by_thread": {
                name: ThreadParts(main=row[f"{name}@main"], workers=row[f"{name}@workers"]) for name in halves
            },
            "uncounted_ns": figures.uncounted.get(row["owner"]),
            "uncounted_caller_ns": figures.uncounted_callers.get(row["owner"]),
        }
    return found
