"""What the collectors of a pass hand over, brought into its tables and its record: one way for every place."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from hwprof.collector.contract import Collected
from hwprof.run.details import as_json
from hwprof.run.manifest import CollectorRecord, PassRecord
from hwprof.run.schema import conform
from hwprof.session.plan import CollectorPlan


class PassResults:
    """Rows by table, and what the pass's record keeps of each collector.

    ``spans``: reads the pass's own spans, which a collector's spans are placed among; ``numbered``: how many span
    numbers are taken.
    """

    def __init__(self, record: PassRecord, spans: Callable[[], pl.DataFrame]) -> None:
        self._record = record
        self._spans = spans
        self._numbered: int | None = None
        self._parts: dict[str, list[pl.DataFrame]] = {}

    def keep(self, planned: CollectorPlan, collected: Collected) -> None:
        """Keeps all of it. Raises ``polars.exceptions.PolarsError`` and ``KeyError`` for rows that fit no table: then
        nothing of it is kept."""
        rows = {
            table: self._conforming(table, frame) for table, frame in collected.tables.items() if not frame.is_empty()
        }
        for table, frame in rows.items():
            self.add(table, frame)
        self._record.events += collected.events
        self._record.metrics += collected.metrics
        self._record.clocks += collected.clocks
        self._record.collectors.append(
            CollectorRecord(
                name=planned.name,
                state="ran",
                role=planned.role,
                options=planned.options,
                notes=collected.notes,
                detail=as_json(collected.detail),
            )
        )

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """More rows of a table."""
        self._parts.setdefault(table, []).append(frame)

    def tables(self) -> dict[str, pl.DataFrame]:
        """All rows by table, with ``pass`` filled in."""
        return {
            table: pl.concat(frames, how="diagonal_relaxed").with_columns(pl.lit(self._record.name).alias("pass"))
            for table, frames in self._parts.items()
        }

    def _conforming(self, table: str, frame: pl.DataFrame) -> pl.DataFrame:
        placed = self._placed(frame) if table == "spans" else frame
        return conform(table, placed.with_columns(pl.lit(self._record.name).alias("pass")))

    def _placed(self, frame: pl.DataFrame) -> pl.DataFrame:
        spans = self._spans()
        if self._numbered is None:
            self._numbered = spans.height
        first, self._numbered = self._numbered, self._numbered + frame.height
        return place(frame, spans, first)


def place(frame: pl.DataFrame, spans: pl.DataFrame, first: int) -> pl.DataFrame:
    """A collector's spans, numbered from ``first`` on, with the iteration that each begins in by time (-1: none)."""
    iterations = spans.filter(pl.col("kind") == "iteration").select("iteration", "warmup", "begin_ns", until="end_ns")
    bare = frame.drop("iteration", "warmup", "span", strict=False).sort("begin_ns")
    placed = bare.join_asof(iterations.sort("begin_ns"), on="begin_ns", strategy="backward")
    inside = pl.col("begin_ns") < pl.col("until")
    return placed.with_columns(
        pl.when(inside).then("iteration").otherwise(-1).alias("iteration"),
        (inside.fill_null(False) & pl.col("warmup").fill_null(False)).alias("warmup"),
        pl.int_range(first, first + frame.height).alias("span"),
    ).drop("until")
