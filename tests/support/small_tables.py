"""Small hand-made tables: rows as tuples, everything else filled in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.run.schema import TABLES

MAIN = 10
WORKER = 11
MS = 1_000_000


def spans(rows: Iterable[tuple[int, int | None, int, str, str, int, int]]) -> pl.DataFrame:
    """(span, parent, iteration, kind, path, begin, end), all on the main thread."""
    return pl.DataFrame(
        [
            {
                "pass": "measure",
                "iteration": iteration,
                "warmup": False,
                "span": span,
                "parent": parent,
                "pid": MAIN,
                "tid": MAIN,
                "kind": kind,
                "path": path,
                "begin_ns": begin,
                "end_ns": end,
                "input_shapes": None,
            }
            for span, parent, iteration, kind, path, begin, end in rows
        ],
        schema=TABLES["spans"],
    )


def counts(rows: Iterable[tuple[int, int, int, str, int] | tuple[int, int, int, str, int, int, int]]) -> pl.DataFrame:
    """(iteration, span, tid, event, value[, enabled, running])."""
    return pl.DataFrame(
        [
            {
                "pass": "measure",
                "iteration": row[0],
                "span": row[1],
                "tid": row[2],
                "event": row[3],
                "value": row[4],
                "enabled_ns": row[5] if len(row) == 7 else 100,
                "running_ns": row[6] if len(row) == 7 else 100,
                "provenance": "measured",
            }
            for row in rows
        ],
        schema=TABLES["counts"],
    )


def layers(rows: Iterable[tuple[str, str, bool]]) -> pl.DataFrame:
    """(path, type, leaf); each leaf has 1000 MACs, 500 bytes and 10 parameters."""
    return pl.DataFrame(
        [
            {
                "order": order,
                "index": order,
                "path": path,
                "type": kind,
                "leaf": leaf,
                "depth": 0,
                "parameters": 10,
                "macs": 1000,
                "bytes": 500,
                "calls": 1,
                "input_shapes": "1x3",
                "output_shapes": "1x4",
                "more_shapes": 0,
            }
            for order, (path, kind, leaf) in enumerate(rows)
        ],
        schema=TABLES["layers"],
    )


def series(points: list[tuple[int, float]], name: str = "energy/package-0", unit: str = "J") -> pl.DataFrame:
    return pl.DataFrame(
        [{"pass": "measure", "time_ns": at, "name": name, "unit": unit, "value": value} for at, value in points],
        schema=TABLES["series"],
    )


def record(iterations: Sequence[tuple[int, bool, int | None, bool]], sets: Sequence[Sequence[str]]) -> PassRecord:
    """Iterations as (index, warmup, event set, layers counted)."""
    return PassRecord(
        name="measure",
        status="completed",
        iterations=[IterationRecord(*iteration) for iteration in iterations],
        event_sets=[list(events) for events in sets],
    )


class Example:
    """Four iterations of a model with two leaves, `a` called twice and `b` once.

    0: warm-up. 1: only timed. 2: counts the set {cycles}. 3: counts the set {instructions}.
    The inference of iteration i lasts 100 + i; in it `a` takes 10 + i and 20, `b` takes 30.
    """

    def __init__(self) -> None:
        span_rows: list[tuple[int, int | None, int, str, str, int, int]] = []
        count_rows: list[tuple[int, int, int, str, int]] = []
        for index in range(4):
            start, first = 1000 * index, 10 * index
            span_rows += [
                (first, None, index, "iteration", f"iteration {index}", start, start + 200),
                (first + 1, first, index, "stage", "inference", start + 10, start + 110 + index),
                (first + 2, first + 1, index, "layer", "outer", start + 10, start + 45),
                (first + 3, first + 2, index, "layer", "a", start + 11, start + 21 + index),
                (first + 4, first + 1, index, "layer", "b", start + 50, start + 80),
                (first + 5, first + 1, index, "layer", "a", start + 85, start + 105),
            ]
            for event in ("cycles", "instructions"):  # both events everywhere: the sets decide what is used
                for offset, main, worker in ((0, 900, 90), (1, 500, 50), (3, 100, 10), (4, 30, 3), (5, 200, 20)):
                    count_rows.append((index, first + offset, MAIN, event, main + index))
                    count_rows.append((index, first + offset, WORKER, event, worker))
        self.spans = spans(span_rows)
        self.counts = counts(count_rows)
        self.layers = layers([("outer", "Block", False), ("a", "Conv2d", True), ("b", "SiLU", True)])
        self.record = record(
            [(0, True, 0, True), (1, False, 0, False), (2, False, 0, True), (3, False, 1, True)],
            [["cycles"], ["instructions"]],
        )
