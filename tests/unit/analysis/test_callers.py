"""Which module called another one on another thread, and what of its counts is its own."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.attribution import attribute
from hwprof.analysis.callers import mixed, with_callers
from hwprof.analysis.owners import ROOT, ROOT_NAME, UNATTRIBUTED, WHOLE, own
from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.run.schema import TABLES, conform

MAIN, HELPER = 1, 2
RECORD = PassRecord(name="measure", main_tid=MAIN, iterations=[IterationRecord(0, False, None, True)])
Span = tuple[int, int | None, int, str, str, int, int]


def spans(rows: list[Span]) -> pl.DataFrame:
    columns = ["span", "parent", "tid", "kind", "path", "begin_ns", "end_ns"]
    known = {"pass": "measure", "iteration": 0, "warmup": False, "pid": 1}
    frame = pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        pl.lit(value).alias(n) for n, value in known.items()
    )
    return conform("spans", frame)


def modules(rows: list[Span]) -> pl.DataFrame:
    return spans(rows).with_columns(leaf=pl.col("path") != ROOT)


AROUND: list[Span] = [(2, 1, MAIN, "layer", ROOT, 1, 99), (3, 2, MAIN, "layer", "a", 2, 10)]


def parents(*further: Span) -> list[int | None]:
    return with_callers(modules([*AROUND, *further]))["parent"].to_list()[len(AROUND) :]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(10, 95)], [2]),
        ([(20, 30), (30, 40)], [2, 2]),
        ([(20, 31), (30, 40)], [None, None]),  # at the same time: process-wide counts are of both
        ([(20, 50), (30, 40), (60, 70)], [None, None, 2]),
        ([(5, 20)], [None]),  # the calling thread worked on meanwhile
        ([(3, 9)], [None]),  # within a leaf, which calls nobody
        ([(90, 100)], [None]),  # outlasts whoever may have called it
    ],
)
def test_who_waited(calls: list[tuple[int, int]], expected: list[int | None]) -> None:
    found = parents(*[(9 + n, None, HELPER + n, "layer", "b", *edges) for n, edges in enumerate(calls)])
    assert found == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(20, 30), (30, 40)], []),  # one after the other: whoever waited knows
        ([(20, 31), (30, 40)], [ROOT_NAME, UNATTRIBUTED]),
        ([(100, 120), (110, 130)], [UNATTRIBUTED]),  # after the model
    ],
)
def test_what_lies_between_calls_that_overlap_is_nobodys(calls: list[tuple[int, int]], expected: list[str]) -> None:
    rows = [*AROUND, *((9 + n, None, HELPER + n, "layer", "b", *edges) for n, edges in enumerate(calls))]
    owner = pl.when(pl.col("path") == ROOT).then(pl.lit(ROOT_NAME)).otherwise("path")
    found = mixed(with_callers(modules(rows).with_columns(owner=owner)), [MAIN])
    assert sorted(found["owner"]) == expected


def test_what_is_called_within_it_has_its_parent_still() -> None:
    assert parents((9, None, HELPER, "layer", ROOT, 20, 60), (10, 9, HELPER, "layer", "b", 20, 60)) == [2, 9]


def test_a_module_on_a_helping_thread_is_counted_once() -> None:
    rows: list[Span] = [
        (0, None, MAIN, "iteration", "iteration 0", 0, 100),
        (1, 0, MAIN, "stage", "inference", 0, 100),
        *AROUND,
        (4, None, HELPER, "layer", "b", 10, 95),
    ]
    done = {0: (15, 85), 1: (15, 85), 2: (13, 85), 3: (8, 0), 4: (0, 85)}
    counted = [
        {"pass": "measure", "iteration": 0, "span": span, "tid": tid, "event": "cycles", "value": value,
         "enabled_ns": 0, "running_ns": 0, "provenance": "measured"}
        for span, values in done.items() for tid, value in zip((MAIN, HELPER), values, strict=True)
    ]  # fmt: skip
    layers = pl.DataFrame({"path": [ROOT, "a", "b"], "leaf": [False, True, True]})
    layers = layers.cast({name: TABLES["layers"][name] for name in layers.columns})
    found = attribute(spans(rows), conform("counts", pl.DataFrame(counted)), layers, RECORD)
    values = {
        owner: tuple(rest) for owner, *rest in found.counts.select("owner", "value", "main", "workers").iter_rows()
    }
    assert values == {
        own(ROOT): (5, 5, 0), "a": (8, 8, 0), "b": (85, 85, 0), UNATTRIBUTED: (2, 2, 0), WHOLE: (100, 15, 85)
    }  # fmt: skip
