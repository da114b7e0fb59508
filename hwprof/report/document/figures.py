"""What stages, layers and layer types have in common, from the analysis's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from hwprof.analysis import layers as analysis


class Times(msgspec.Struct, kw_only=True, frozen=True):
    """Statistics of a repeated time; the spread is the median absolute deviation, which one repetition has none of.
    Provenance: measured (clock)."""

    repetitions: int  # of how many the others are
    median_ns: float  # half of them took no longer
    mad_ns: float | None  # median absolute deviation from the median
    mean_ns: float  # their sum over their number
    std_ns: float | None  # sample standard deviation
    min_ns: float  # the least
    max_ns: float  # the most


class ThreadParts(msgspec.Struct, kw_only=True, frozen=True):
    """A metric of the calling thread and of all others."""

    main: float | None
    workers: float | None


class Figures(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What stages, layers and layer types have in common."""

    share: float | None  # of the inference; of a stage: of the iterations
    metrics: dict[str, float]  # those that are known
    by_thread: dict[str, ThreadParts]  # the metrics of which parts by thread are known, and one is not 0
    uncounted_ns: float | None = None  # CPU time of code that an instrumented pass did not count: so it has no counts
    uncounted_caller_ns: float | None = None  # of calls by threads of which nothing was counted: so it has no counts


def times(row: dict[str, Any], prefix: str, repetitions: str) -> Times | None:
    """A row's statistics of a time; None without a value."""
    if row.get(f"{prefix}_median_ns") is None:
        return None
    figures = {f"{name}_ns": row[f"{prefix}_{name}_ns"] for name in ("median", "mad", "mean", "std", "min", "max")}
    return Times(repetitions=row[repetitions], **figures)


def by_owner(figures: analysis.Figures) -> dict[str, dict[str, Any]]:
    """Of every owner the fields ``metrics``, ``by_thread`` and what its counts lack."""
    columns = [name for name in figures.metrics.columns if name != "owner" and "@" not in name]
    halves = dict.fromkeys(name.partition("@")[0] for name in figures.metrics.columns if "@" in name)
    return {
        row["owner"]: {
            "metrics": {name: row[name] for name in columns if row[name] is not None},
            "by_thread": {name: parts for name in halves if (parts := _parts(row, name)) is not None},
            "uncounted_ns": figures.uncounted.get(row["owner"]),
            "uncounted_caller_ns": figures.uncounted_callers.get(row["owner"]),
        }
        for row in figures.metrics.iter_rows(named=True)
    }


def _parts(row: dict[str, Any], name: str) -> ThreadParts | None:
    main, workers = row[f"{name}@main"], row[f"{name}@workers"]
    return ThreadParts(main=main, workers=workers) if main or workers else None
