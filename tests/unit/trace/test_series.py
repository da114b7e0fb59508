"""Series as counter tracks: which tracks there are, and what stands on them."""

from __future__ import annotations

import io
from typing import Any

import polars as pl
import pytest

from hwprof.run.schema import conform
from hwprof.trace import series as trace_series
from hwprof.trace.encoder import EventSequence
from hwprof.trace.time_windows import windows
from tests.support import trace_decoding as decoding

MS = 1_000_000
SERIES = {"time_ns": pl.Int64, "name": pl.String, "unit": pl.String, "value": pl.Float64}


class Tracks:
    """Only the counters, each in a file of its own."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str, str], io.BytesIO] = {}

    def counter(self, group: str, name: str, unit: str, **_: Any) -> EventSequence:
        assert (group, name, unit) not in self.files
        self.files[group, name, unit], sequence = decoding.sequence()
        return sequence

    def values(self) -> dict[tuple[str, str, str], list[tuple[int, Any]]]:
        return {
            track: [(event.time_ns, pytest.approx(event.value)) for event in decoding.events(file)]
            for track, file in self.files.items()
        }


def written(rows: list[tuple[int, str, str, float | None]]) -> tuple[dict[tuple[str, str, str], Any], int, int]:
    """What is on the tracks, how many values were written, and how many rows were told of."""
    frame = conform("series", pl.DataFrame(rows, schema=SERIES, orient="row"))
    tracks, told = Tracks(), list[int]()
    count = trace_series.write_series(frame.lazy(), tracks, told.append)  # type: ignore[arg-type]
    return tracks.values(), count, sum(told)


@pytest.mark.parametrize(
    ("name", "unit", "rate"),
    [
        ("energy/package-0", "J", ("power", "power/package-0", "W", 5.0)),
        ("energy", "J", ("power", "power/energy", "W", 5.0)),
        ("uncore/dram-read", "B", ("traffic", "traffic/dram-read", "GB/s", 5e-9)),
        ("uncore/temperature", "K", None),
        ("memory/rss", "B", None),
    ],
)
def test_what_only_grows_has_a_track_of_its_rate(
    name: str, unit: str, rate: tuple[str, str, str, float] | None
) -> None:
    found, count, told = written([(0, name, unit, 1.0), (1000 * MS, name, unit, 6.0), (2000 * MS, name, unit, None)])
    assert (count, told) == (2, 3)
    expected: dict[tuple[str, str, str], Any] = {(name.split("/")[0], name, unit): [(0, 1.0), (1000 * MS, 6.0)]}
    if rate is not None:
        expected[rate[:3]] = [(0, rate[3]), (1000 * MS, 0.0)]
    assert found == expected


@pytest.mark.parametrize("known", [[], [(5 * MS, "energy/x", "J", 1.0)]])
def test_a_meter_that_tells_nothing_for_a_time_costs_nothing_else(known: list[tuple[int, str, str, float]]) -> None:
    found, count, told = written([(0, "energy/x", "J", None), *known, (0, "memory/rss", "B", 7.0)])
    assert (count, told) == (1 + len(known), 2 + len(known))
    assert found["memory", "memory/rss", "B"] == [(0, 7.0)]
    assert found["power", "power/x", "W"] == [(5 * MS, 0.0)] * len(known)


def test_tracks_stand_in_order_of_their_names() -> None:
    found, _, _ = written([(0, "b/x", "A", 1.0), (0, "a/y", "C", 1.0), (0, "a/y", "B", 1.0), (0, "a/x", "D", 1.0)])
    assert [track[1:] for track in found] == [("a/x", "D"), ("a/y", "B"), ("a/y", "C"), ("b/x", "A")]


def test_windows_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[int, str, str, float | None]] = [(at, "energy/core", "J", float(at**2)) for at in range(40)]
    whole = written(rows)
    monkeypatch.setattr(trace_series, "windows", lambda frame, time: windows(frame, time, rows=7))
    assert written(rows) == whole


@pytest.mark.parametrize(("rows_that_fit", "most_reads"), [(0, None), (1000, 3)])
def test_of_many_series_the_table_is_read_once_where_it_fits(
    rows_that_fit: int, most_reads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = conform("series", pl.DataFrame([(at, f"s{at:03}", "1", 1.0) for at in range(100)], SERIES, orient="row"))
    reads: list[int] = []

    def read(rows: pl.DataFrame) -> pl.DataFrame:
        reads.append(len(rows))
        return rows

    monkeypatch.setattr(trace_series, "ROWS", rows_that_fit)
    tracks = Tracks()
    counted = frame.lazy().map_batches(read)
    assert trace_series.write_series(counted, tracks, lambda _: None) == 100  # type: ignore[arg-type]
    assert tracks.values() == {(f"s{at:03}", f"s{at:03}", "1"): [(at, 1.0)] for at in range(100)}
    assert most_reads is None or len(reads) <= most_reads
