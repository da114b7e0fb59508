"""What an iteration took, and the core's frequency, over the time of a pass."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.over_time import over_time
from hwprof.run.details import CoreClockDetail, as_json
from hwprof.run.manifest import CollectorRecord, Disturbance, IterationRecord, PassRecord

MS = 1_000_000
CLOCK = as_json(CoreClockDetail(series="core-clock", probes=3, chains_apart=0.0, reference_ghz=2.5))
NO_SERIES = pl.DataFrame(schema={"name": pl.String, "time_ns": pl.Int64, "value": pl.Float64})


def entry(index: int, **told: bool) -> IterationRecord:
    return IterationRecord(index, told.get("warmup", told.get("bare", False)), None, told.get("counted", False),
                           bare=told.get("bare", False))  # fmt: skip


def record(iterations: list[IterationRecord]) -> PassRecord:
    probe = CollectorRecord(name="core_clock", state="ran", detail=CLOCK)
    return PassRecord(name="measure", main_tid=1, iterations=iterations, collectors=[probe])


def spans(times_ms: list[int]) -> pl.DataFrame:
    """An iteration every 100 ms, a stage in it."""
    begins = [100 * MS * number for number in range(len(times_ms))]
    rows = [
        (kind, number, begin, begin + took * MS // part)
        for number, (begin, took) in enumerate(zip(begins, times_ms, strict=True))
        for kind, part in (("stage", 2), ("iteration", 1))
    ]
    schema = {"kind": pl.String, "iteration": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def probes(*found: tuple[int, float], name: str = "core-clock") -> pl.DataFrame:
    return pl.DataFrame([(name, at_ms * MS, ghz) for at_ms, ghz in found], schema=NO_SERIES.schema, orient="row")


def test_parts_are_in_the_order_of_time_with_their_own_figures() -> None:
    pass_ = record([entry(0, warmup=True), *(entry(number) for number in range(1, 7))])
    series = pl.concat([
        probes((90, 9.0), (100, 4.0), (250, 3.8), (299, 3.0), (310, 2.5), (650, 2.0)), probes((350, 7.0), name="x"),
    ])  # fmt: skip
    found = over_time(pass_, spans([90, 10, 12, 20, 30, 50, 40]).sample(fraction=1.0, shuffle=True), series, 3)
    assert found is not None and (found.kind, found.iterations) == ("timed", 6)
    assert found.parts["begin_ns"].to_list() == [100 * MS, 300 * MS, 500 * MS]
    assert found.parts["end_ns"].to_list() == [212 * MS, 430 * MS, 640 * MS]
    assert found.parts["min_ns"].to_list() == [10 * MS, 20 * MS, 40 * MS]
    assert found.parts["median_ns"].to_list() == [11 * MS, 25 * MS, 45 * MS]
    assert found.parts["max_ns"].to_list() == [12 * MS, 30 * MS, 50 * MS]
    assert found.parts["ghz"].to_list() == [3.8, 2.5, 2.0], "what was before the first part is in none"


@pytest.mark.parametrize(
    ("of", "kind", "times_ms"),
    [
        ([{"bare": True}, {"bare": True}, {}, {"warmup": True}, {"counted": True}], "bare", [1, 2]),
        ([{"warmup": True}, {"warmup": True}, {}, {}, {"counted": True}], "timed", [3, 4]),
        ([{"counted": True}, {"warmup": True}, {"counted": True}, {}, {"bare": True}], "counted", [1, 3]),
    ],
)
def test_iterations_of_the_most_frequent_kind_are_compared(
    of: list[dict[str, bool]], kind: str, times_ms: list[int]
) -> None:
    pass_ = record([entry(number, **told) for number, told in enumerate(of)])
    found = over_time(pass_, spans([1, 2, 3, 4, 5]), NO_SERIES)
    assert found is not None and found.kind == kind
    assert found.parts["median_ns"].to_list() == [took * MS for took in times_ms]
    assert found.parts["ghz"].to_list() == [None, None]


def test_without_an_iteration_after_warm_up_there_is_none() -> None:
    alone = IterationRecord(1, True, None, False, alone_for="x")
    assert over_time(record([entry(0, warmup=True), alone]), spans([1, 1]), NO_SERIES) is None
    assert over_time(record([entry(9)]), spans([1, 1]), NO_SERIES) is None


def test_disturbed_ones_are_counted_and_stay() -> None:
    lost = Disturbance(elapsed_ns=10 * MS, preemptions=1, waited_ns=5 * MS, stolen_ns=0)
    calm = Disturbance(elapsed_ns=10 * MS, preemptions=0, waited_ns=0, stolen_ns=0)
    pass_ = record([IterationRecord(index, False, None, False, disturbance=one)
                    for index, one in enumerate([calm, lost, lost, calm])])  # fmt: skip
    found = over_time(pass_, spans([10, 20, 30, 40]), NO_SERIES, 2)
    assert found is not None
    assert found.parts.select("iterations", "disturbed").rows() == [(2, 1), (2, 1)]


@given(st.lists(st.integers(1, 99), min_size=1, max_size=60), st.integers(1, 50))
def test_every_iteration_is_in_one_part_and_parts_are_alike(times_ms: list[int], most: int) -> None:
    found = over_time(record([entry(number) for number in range(len(times_ms))]), spans(times_ms), NO_SERIES, most)
    assert found is not None
    sizes = found.parts["iterations"].to_list()
    assert (sum(sizes), len(sizes)) == (len(times_ms), min(most, len(times_ms)))
    assert max(sizes) - min(sizes) <= 1
    assert found.parts["min_ns"].min() == min(times_ms) * MS and found.parts["max_ns"].max() == max(times_ms) * MS
