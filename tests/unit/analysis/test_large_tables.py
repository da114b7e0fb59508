"""What is worked on some rows at a time, and by numbers for names, comes to the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from hwprof.analysis import attribution, instrumented, large_tables
from hwprof.analysis.large_tables import numbered, some_at_a_time
from hwprof.run.directory import RunDirectory
from tests.support.synthetic_run import build


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return build(tmp_path, iterations=4)


@pytest.mark.parametrize("at_once", [1, 7, 60])
def test_counts_are_attributed_alike_however_many_at_a_time(
    run: RunDirectory, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = run.find_pass("measure")
    assert record is not None
    spans, counts, layers = run.of_pass("spans", record.name), run.of_pass("counts", record.name), run.read("layers")
    together = attribution.attribute(spans, counts, layers, record)
    calls = instrumented.by_call(spans, counts)
    assert together.counts.height and calls.height
    monkeypatch.setattr(attribution, "COUNTS", at_once)
    monkeypatch.setattr(large_tables, "COUNTS", at_once)
    apart = attribution.attribute(spans, counts, layers, record)
    assert_frame_equal(apart.counts, together.counts)
    assert_frame_equal(apart.uncounted, together.uncounted)
    calls_apart = instrumented.by_call(spans, counts)
    assert_frame_equal(calls_apart, calls, check_row_order=False, check_column_order=False)


def test_names_become_numbers_once() -> None:
    frame = pl.DataFrame({"name": ["b", None, "a", "b"], "value": [1, 2, 3, 4]})
    once = numbered(frame, "name")
    assert isinstance(once.schema["name"], pl.Enum)
    assert once["name"].cast(pl.String).to_list() == ["b", None, "a", "b"]
    assert numbered(once, "name").schema == once.schema


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_every_span_comes_once_with_all_of_its_counts(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tables, "COUNTS", at_once)
    spans = pl.DataFrame({"span": [3, 1, 2, 9]})
    counts = pl.DataFrame({"span": [1, 2, 2, 3, 3, 3], "value": range(6)})
    parts = list(some_at_a_time(spans, counts))
    assert pl.concat(part for part, _ in parts).equals(spans)
    assert sorted(value for _, found in parts for value in found["value"]) == list(range(6))
    assert all(set(found["span"]) <= set(part["span"]) for part, found in parts)
