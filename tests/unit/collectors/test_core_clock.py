"""The core's frequency from chains of instructions, with made-up chains."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from collectors.core_clock.collector import CoreClockCollector
from hwprof.run.details import CoreClockDetail
from hwprof.run.notes import NoteKind
from hwprof.run.schema import conform


class TickLength:
    def ticks_per_ns(self) -> float:
        return 2.5


def probing(*found: tuple[float, float]) -> CoreClockCollector:
    """Of a processor where the chains take these cycles per tick."""
    collector, probes = CoreClockCollector(), iter(found)
    collector._probe, collector._length = (lambda: next(probes)), TickLength()  # type: ignore[assignment]
    for _ in found:
        collector.iteration_edge()
    return collector


def test_cycles_per_tick_times_ticks_per_nanosecond() -> None:
    collected = probing((1.5, 1.5), (1.6, 1.59)).stop()
    series = conform("series", collected.tables["series"].with_columns(pl.lit("trace").alias("pass")))
    assert series["value"].to_list() == [pytest.approx(3.75), pytest.approx(4.0)]
    assert series["unit"].unique().to_list() == ["GHz"]
    assert series["time_ns"].is_sorted()
    assert collected.notes == []


def test_chains_that_disagree_give_no_frequency_but_a_reason() -> None:
    collected = probing((1.5, 1.2), (1.5, 1.2), (1.5, 1.5)).stop()
    assert collected.tables == {}
    (note,) = collected.notes
    assert note.kind is NoteKind.NOT_AVAILABLE
    assert isinstance(collected.detail, CoreClockDetail)
    assert collected.detail.chains_apart == pytest.approx(0.25)


def test_without_an_iteration_there_is_nothing() -> None:
    assert CoreClockCollector().stop().tables == {}
    assert probing().stop().tables == {}


@pytest.mark.parametrize("text", ["", "flags : fpu tsc\n", None])
def test_where_the_counters_rate_is_not_known_to_be_constant(text: str | None, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    if text is not None:
        (tmp_path / "proc" / "cpuinfo").write_text(text)
    found = CoreClockCollector(tmp_path).availability()
    assert not found.ok and found.reason
