"""What the collectors of a pass hand over, brought into its tables and its record: one way for every place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl

from hwprof.collector.contract import Collected
from hwprof.errors import HwprofError
from hwprof.run import details
from hwprof.run.details import as_json
from hwprof.run.manifest import ClockRecord, CollectorRecord, EventInfo, MetricDefinition, PassRecord, Tool
from hwprof.run.notes import Note
from hwprof.run.process_events import SESSION_EVENTS
from hwprof.run.schema import TABLES, conform, require_values
from hwprof.session.pass_rows import MANY, PassRows
from hwprof.session.plan import CollectorPlan

MOST_NESTED: Final = 100
"""Levels of a detail: many thousands would be written, and never read again."""


class Said(msgspec.Struct):
    """What a manifest keeps of what a collector hands over."""

    notes: list[Note]
    events: list[EventInfo]
    metrics: list[MetricDefinition]
    clocks: list[ClockRecord]
    detail: dict[str, Any]
    tools: list[Tool]


def checked(collected: Collected) -> Said:
    """It, as the manifest's reader will have it: structs do not look at what they are made with, and one that is wrong
    would make the whole manifest unreadable. Raises ``HwprofError``, ``ValueError`` and ``TypeError``."""
    kept: object = collected
    if not isinstance(kept, Collected):
        raise HwprofError(f"stop() returns {type(kept).__name__}, no Collected")
    detail = as_json(collected.detail)
    if _is_nested(detail, MOST_NESTED):
        raise HwprofError(f"its detail is nested more than {MOST_NESTED} levels deep")
    details.check(detail)
    said = Said(collected.notes, collected.events, collected.metrics, collected.clocks, detail, collected.tools)
    return msgspec.json.decode(msgspec.json.encode(said), type=Said)


def _is_nested(value: Any, levels: int) -> bool:
    """Whether there are more levels than that in plain data."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_nested(one, levels - 1) for one in inner)


class PassResults:
    """Rows by table, and what the pass's record keeps of each collector.

    ``spans``: reads the pass's own spans, which a collector's spans are placed among; ``series``: the names of those
    that collectors in the worker have brought already. A series, or an event, is known by its name: whoever looks for
    one would take the rows of two collectors for one's. ``folder``: where rows lie that are many; None: in memory.
    """

    def __init__(
        self,
        record: PassRecord,
        spans: Callable[[], pl.DataFrame],
        series: Callable[[], Collection[str]] = tuple,
        folder: Path | None = None,
    ) -> None:
        self._record = record
        self._spans = spans
        self._series_before = series
        self._events: set[str] = {*SESSION_EVENTS, *(event.name for event in record.events)}
        self._series: set[str] = set()
        self._numbered: int | None = None
        self._folder = folder
        self._rows = PassRows(folder)

    def keep(
        self, planned: CollectorPlan, collected: Collected, further: Iterable[dict[str, pl.DataFrame]] = ()
    ) -> None:
        """Keeps all of it, and ``further`` rows by table, which are made as they are asked for. Raises
        ``polars.exceptions.PolarsError`` and ``HwprofError`` for rows that fit no table, and ``ValueError`` or
        ``TypeError`` for what a manifest cannot hold: then nothing of it is kept."""
        said = checked(collected)
        rows = PassRows(self._folder)
        events, series = {event.name for event in said.events}, set[str]()
        tables, collected.tables = dict(collected.tables), {}  # of a million rows, which are kept once
        try:
            for more in chain([tables], further):
                for table in [*more]:
                    for kept in self._conforming(table, more.pop(table)):
                        events |= _names(table, kept, ("counts", "kernel_counts"), "event")
                        series |= _names(table, kept, ("series",), "name")
                        rows.add(table, kept)
            self._require_own_names(events, series)
            self._rows.add_all(rows)
        except BaseException:
            rows.discard()
            raise
        self._events |= events
        self._series |= series
        self._record.events += said.events
        self._record.metrics += said.metrics
        self._record.clocks += said.clocks
        self._record.collectors.append(
            CollectorRecord(
                name=planned.name,
                state="ran",
                role=planned.role,
                options=planned.options,
                notes=said.notes,
                detail=said.detail,
                tools=said.tools or list(planned.tools),
            )
        )

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """More rows of a table, of the session's own."""
        self._rows.add(table, self._of_pass(table, frame))

    def settle(self) -> None:
        """What was added is written, where it is too much to be held. Raises as ``PassRows.add``."""
        self._rows.settle()

    def tables(self) -> dict[str, pl.LazyFrame]:
        """All rows by table, with ``pass`` filled in."""
        return self._rows.tables()

    def write(self, folder: Path) -> Sequence[str]:
        """Writes all of them there, each as a file of its table's name, and returns these."""
        return self._rows.write(folder)

    def discard(self) -> None:
        """They have been written."""
        self._rows.discard()

    def _require_own_names(self, events: Collection[str], series: Collection[str]) -> None:
        if series:
            self._series.update(self._series_before())
        for what, names, taken in (("an event", events, self._events), ("a series", series, self._series)):
            for name in sorted(taken.intersection(names)):
                raise HwprofError(
                    f"another collector of the pass has {what} {name} already", "a name of its own for it"
                )

    def _of_pass(self, table: str, frame: pl.DataFrame) -> pl.DataFrame:
        return conform(table, frame.with_columns(pl.lit(self._record.name).alias("pass")))

    def _conforming(self, table: str, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Some rows at a time; of a table without rows nobody asks what it is."""
        if frame.is_empty():
            return
        if table not in TABLES:
            raise HwprofError(f"there is no table {table}")
        placed = self._placed(frame) if table == "spans" else frame
        for some in placed.iter_slices(MANY):
            conforming = self._of_pass(table, some)
            require_values(table, conforming)
            yield conforming

    def _placed(self, frame: pl.DataFrame) -> pl.DataFrame:
        spans = self._spans()
        if self._numbered is None:
            self._numbered = spans.height
        first, self._numbered = self._numbered, self._numbered + frame.height
        return place(frame, spans, first)


def _names(table: str, rows: pl.DataFrame, of_tables: Collection[str], column: str) -> set[str]:
    return set(rows[column].unique()) if table in of_tables else set()


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
