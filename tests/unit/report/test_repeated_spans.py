"""Spans whose counts by kernel are another one's, as a run's table names them: what it may say."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hwprof.report.document.builder import build
from hwprof.report.document.instrumented import Instrumented
from hwprof.run.directory import write_table
from hwprof.run.repeated_spans import of_all_spans
from hwprof.run.schema import TABLES
from tests.support import synthetic_variants


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([(0, -1), (0, -1)], "rows with the same pass, span"),
        ([(1 << 40, 0)], "names spans that there are not"),
        ([(0, 1 << 40)], "names spans that there are not"),
        ([(0, 0)], "spans are like others that are in it too"),
        ([(0, 1), (1, 2)], "spans are like others that are in it too"),
    ],
)
def test_what_no_pass_can_have_written_is_damage(rows: list[tuple[int, int]], why: str, tmp_path: Path) -> None:
    """``rows``: span and like, as places among the pass's spans; others are numbers of none."""
    run = synthetic_variants.kernels_under_roofs(tmp_path)
    spans = run.of_pass("spans", "instrumented")["span"].to_list()
    numbers = [[spans[one] if -1 <= one < len(spans) else one for one in row] for row in rows]
    table = [("instrumented", 0, span, like) for span, like in numbers]
    frame = pl.DataFrame(table, schema=TABLES["repeated_spans"], orient="row")
    write_table(run.path / "repeated_spans.parquet", "repeated_spans", frame)
    document = build(run)
    assert any("repeated_spans.parquet of this run is damaged" in one and why in one for one in document.damaged)
    assert "layers" in document.parts, "all else is told"
    found = document.part(Instrumented)
    assert found is None or not any(one.kernels for one in found.passes), "others' rows are not all that there was"


def test_rows_of_all_spans_are_those_of_each() -> None:
    kinds = dict.fromkeys(("iteration", "tid", "kernel"), 0) | {"event": "e", "provenance": "instrumented"}
    rows = pl.DataFrame([{"pass": name, **kinds, "span": 5, "value": value} for name, value in (("a", 1), ("b", 2))])
    counts = rows.select(pl.col(name).cast(kind) for name, kind in TABLES["kernel_counts"].items())
    repeated = pl.DataFrame([("a", 3, 7, 5), ("a", 3, 9, 5)], schema=TABLES["repeated_spans"], orient="row")
    found = of_all_spans(counts.lazy(), repeated.lazy()).select("pass", "iteration", "span", "value").collect()
    assert sorted(found.iter_rows()) == [("a", 0, 5, 1), ("a", 3, 7, 1), ("a", 3, 9, 1), ("b", 0, 5, 2)]
