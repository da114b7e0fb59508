"""Joules of an image, of meters and values whose energy is known."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from hwprof.bench import energy, table
from hwprof.bench.energy import Energy, Reading, ZoneEnergy
from hwprof.bench.matrix import Case
from hwprof.bench.result import Result, measured
from hwprof.bench.rows import rows_of
from hwprof.bench.samples import Samples, Value
from hwprof.collector import registry
from hwprof.collector.contract import Availability, Collected, Collector, Note, NoteKind, PassContext
from hwprof.collector.declaration import Declaration, Place
from hwprof.report.text.console import make_console
from hwprof.run.details import EnergyDetail
from hwprof.run.roles import Role
from tests.unit.bench.support import CREATED, case, result, value

MS = 1_000_000
WATTS = 40
SHARES = {"package-0": 1.0, "package-0/dram": 0.25, "package-1": 0.5}


class Meters(Collector):
    """Two packages that take 40 W, but 10 W more while a value is measured; the second one half of it."""

    values: tuple[Value, ...] = ()

    def availability(self) -> Availability:
        return Availability()

    def start(self, context: PassContext) -> None:
        assert context.pass_name == "bench"

    def stop(self) -> Collected:
        times = list(range(0, 2_000 * MS, MS))
        inside = [sum(max(0, min(at, one.end_ns) - min(at, one.begin_ns)) for one in self.values) for at in times]
        joules = [(WATTS * at + 10 * within) / 1e9 for at, within in zip(times, inside, strict=True)]
        series = pl.concat(
            pl.DataFrame({"time_ns": times, "value": [share * one for one in joules]}).with_columns(
                name=pl.lit(f"energy/{zone}"), unit=pl.lit("J")
            )
            for zone, share in SHARES.items()
        )
        detail = EnergyDetail(zones=["package-0"], refresh_ms=dict.fromkeys(SHARES, 1e-6))
        return Collected({"series": series}, detail=detail)


class Silent(Meters):
    def stop(self) -> Collected:
        return Collected(notes=[Note(NoteKind.NOT_AVAILABLE, "stands still", "package-0", "a meter")])


class Missing(Meters):
    def availability(self) -> Availability:
        return Availability.no("no counters here", "buy some")


class Failing(Meters):
    def start(self, context: PassContext) -> None:
        raise RuntimeError("it broke")


def registered(monkeypatch: pytest.MonkeyPatch, kind: type[Collector]) -> None:
    declared = Declaration(name="mine", summary="", place=Place.EXTERNAL, role=Role.ENERGY, implementation="x:X")
    found = [registry.Surveyed(declared, kind(), kind().availability())]
    monkeypatch.setattr(registry, "declarations", lambda: [declared])
    monkeypatch.setattr(registry, "survey", lambda _: found)
    monkeypatch.setattr(registry, "create", lambda _: kind())
    monkeypatch.setattr(registry, "names", lambda: ["mine"])


def read(folder: Path, *samples: Samples, images: int = 2) -> Energy:
    with Reading({}, folder) as reading:
        pass
    return reading.of_images(samples, images)


def test_joules_of_values_of_known_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes, of 3 and of 1 iterations a value, with what lies between them left out."""
    first = [value(100 * MS, 400 * MS, 3), value(500 * MS, 800 * MS, 3)]
    second = [value(1_000 * MS, 1_100 * MS, 1)]
    monkeypatch.setattr(Meters, "values", (*first, *second))
    registered(monkeypatch, Meters)
    found = read(tmp_path, Samples(values=first), Samples(values=second))
    whole, dram, other = found.zones
    assert (whole.zone, dram.zone, other.zone) == ("package-0", "package-0/dram", "package-1")
    assert whole.joules == pytest.approx(50 * 0.700 / (7 * 2)) and whole.watts == pytest.approx(50)
    assert dram.joules == pytest.approx(whole.joules / 4) and 0 < whole.joules_error < 0.02 * whole.joules
    assert list(tmp_path.iterdir()) == []


def test_joules_are_known_no_better_than_processes_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 and of 150 ms an iteration, at 50 W."""
    first, second = [value(100 * MS, 400 * MS, 3)], [value(1_000 * MS, 1_300 * MS, 2)]
    monkeypatch.setattr(Meters, "values", (*first, *second))
    registered(monkeypatch, Meters)
    whole, *_ = read(tmp_path, Samples(values=first), Samples(values=second)).zones
    assert whole.joules == pytest.approx(50 * 0.600 / (5 * 2))
    assert whole.joules_error == pytest.approx(12.706 * (3.75 - 2.5) / 2, rel=0.01)


def test_values_that_no_reading_covers_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, Meters)
    late = value(5_000 * MS, 6_000 * MS, 1)
    found = read(tmp_path, Samples(values=[value(100 * MS, 400 * MS, 3), late]))
    assert found.zones[0].joules == pytest.approx(WATTS * 0.100 / 2)
    none = read(tmp_path, Samples(values=[late]))
    assert none.zones == [] and none.absent is not None and "cover no value" in none.absent.reason


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Missing, "mine: no counters here. Try: buy some"),
        (Failing, "mine: RuntimeError: it broke"),
        (Silent, "package-0: stands still. Try: a meter"),
    ],
)
def test_why_there_are_none_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Collector], told: str
) -> None:
    registered(monkeypatch, kind)
    found = read(tmp_path, Samples(values=[value(0, MS)]))
    assert found.zones == [] and found.absent is not None and found.absent.explanation == told
    rows = rows_of([with_energy(case(), found)], None)
    assert rows[0].joules_per_image is None and table.energy_told(rows) == f"no J/image: {told}"


def with_energy(of: Case, found: Energy) -> Result:
    known = result(of, 40_000_000)
    assert known.model is not None
    samples = [Samples(values=[value(0, 120_000_000, inference_ns=40_000_000)])]
    return measured(of, CREATED, 1.0, known.model, samples, 0.0, found)


def zone(name: str, joules: float, error: float = 0.01) -> ZoneEnergy:
    return ZoneEnergy(zone=name, joules=joules, joules_error=error, watts=10 * joules)


@pytest.mark.parametrize(
    ("zones", "joules", "meter"),
    [
        ([zone("package-0", 1.0), zone("package-0/dram", 0.5), zone("psys", 3.0)], 1.0, "package-0"),
        ([zone("package-0", 1.0), zone("package-1", 0.5)], 1.5, "2 packages"),
        ([zone("package-0", 1.0), zone("meter", 4.0)], 4.0, "meter"),
        ([zone("psys", 3.0)], 3.0, "psys"),
    ],
)
def test_the_row_has_the_whole_of_what_is_known_best(zones: list[ZoneEnergy], joules: float, meter: str) -> None:
    (row,) = rows_of([with_energy(case(), Energy(zones=zones))], None)
    assert row.joules_per_image == pytest.approx(joules) and row.meter == meter and row.no_joules is None
    assert row.watts == pytest.approx(10 * joules)


def test_the_table_has_a_dash_where_the_error_is_above_the_value() -> None:
    known = with_energy(case(), Energy(zones=[zone("package-0", 1.5)]))
    vague = with_energy(case(imgsz=32), Energy(zones=[zone("package-0", 0.001)]))
    rows = rows_of([known, vague], None)
    file = io.StringIO()
    table.show(rows, make_console(160, file))
    assert "J/image" in file.getvalue() and "1.50 ±0.01" in file.getvalue() and "0.001" not in file.getvalue()
    told = "J/image: the mean, with all stages, of all that the meter measures (package-0)"
    assert table.energy_told(rows[:1]) == told
    assert table.energy_told(rows) == f"{told}; error above the value in 1 of 2 rows. Try: --min-time 1"


def test_a_model_of_the_users_has_joules_of_a_forward() -> None:
    (row,) = rows_of([with_energy(case(model="mine:model"), Energy(zones=[zone("package-0", 1.5)]))], None)
    assert (row.joules_per_image, row.joules_per_forward, row.images_per_s) == (None, 1.5, None)
    assert row.forwards_per_s == pytest.approx(25) and row.end_to_end_per_s is None
    file = io.StringIO()
    table.show([row], make_console(160, file))
    assert {"J/forward", "forwards/s"} <= {*file.getvalue().split()} and "images/s" not in file.getvalue()
    assert "J/forward" in (table.energy_told([row]) or "")


def test_a_meter_on_demand_is_read_where_it_has_options() -> None:
    assert energy._names({}) == ["rapl"]
    assert {*energy._names({"power_meter": {"power_command": "x"}})} == {"rapl", "power_meter"}


def test_a_bench_of_before_has_none() -> None:
    (row,) = rows_of([result(case(), 5)], None)
    assert (row.joules_per_image, row.no_joules) == (None, None)
    assert table.energy_told([row]) is None
