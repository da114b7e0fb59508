"""Joules of layers: what a meter that is refreshed and read now and then tells of windows of milliseconds."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate

import polars as pl
import pytest

from collectors.power_meter.energy import joules
from hwprof.analysis import layer_energy
from hwprof.analysis.energy import idle_watts, meters_of
from hwprof.analysis.energy_windows import Meter
from hwprof.analysis.layer_energy import SCHEMA, TOO_VAGUE
from hwprof.unavailable import Unavailable
from tests.support.small_tables import MS, layers, series, spans

US = 1000
Spans = list[tuple[int, int | None, int, str, str, int, int]]
NAMES = [f"net.{n}" for n in range(6)]
LAYERS = layers([("net", "Net", False), *((name, "Conv2d", True) for name in NAMES)])
IDLE_W = 12.0


def layer_energies(meters: list[Meter], rows: Spans, iterations: int, *, idle: bool = True) -> pl.DataFrame:
    table = spans(rows)
    watts = idle_watts(meters, table) if idle else {}
    found = layer_energy.layer_energies(meters, table, LAYERS, tuple(range(iterations)), watts)
    assert isinstance(found, pl.DataFrame) and found.schema == SCHEMA
    return found


class Machine:
    """An idle second's tenth, then iterations of layers that each take a power of their own (W) for so long (us), with
    other work before each iteration."""

    def __init__(self, watts: list[float], lengths_us: list[int], iterations: int, chance: random.Random) -> None:
        self.edges_us, self.watts = [0], [IDLE_W]
        self.rows: Spans = [(0, None, -1, "region", "idle", 5 * MS, 95 * MS)]
        at, number = 100_000, 1
        for iteration in range(iterations):
            self._goes_on(at, 25.0)
            at += chance.randrange(3_000, 6_000)
            begin, parent = at, number
            number += 1
            for name, power, length in zip(NAMES, watts, lengths_us, strict=True):
                lasts = round(length * chance.uniform(0.9, 1.1))
                self._goes_on(at, power * chance.uniform(0.9, 1.1))
                self.rows.append((number, parent, iteration, "layer", name, at * US, (at + lasts) * US))
                at, number = at + lasts, number + 1
            self.rows.append((parent, None, iteration, "layer", "net", begin * US, at * US))
            self.rows.append((number, None, iteration, "stage", "inference", begin * US, at * US))
            number += 1
        self._goes_on(at, IDLE_W)
        self.end_us = at + 50_000
        lasted = [after - before for before, after in zip(self.edges_us, self.edges_us[1:], strict=False)]
        self._joules = list(accumulate((w * t * 1e-6 for w, t in zip(self.watts, lasted, strict=False)), initial=0.0))

    def _goes_on(self, at_us: int, watts: float) -> None:
        self.edges_us.append(at_us)
        self.watts.append(watts)

    def joules(self, at_us: float) -> float:
        """Since the begin."""
        place = bisect_right(self.edges_us, at_us) - 1
        return self._joules[place] + self.watts[place] * (at_us - self.edges_us[place]) * 1e-6

    def truth(self) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for _, _, _, kind, path, begin, end in self.rows:
            if kind == "layer" and path != "net":
                found[path] += self.joules(end / US) - self.joules(begin / US)
        return found

    def read(self, refresh_us: int, period_us: int, chance: random.Random) -> pl.DataFrame:
        """What a meter says that is refreshed about so often, and read about so often."""
        refreshed, at = [0.0], 0.0
        while at < self.end_us:
            at += refresh_us * chance.uniform(0.9, 1.1)
            refreshed.append(at)
        points, at = [], float(chance.randrange(period_us))
        while at < self.end_us:
            known = refreshed[bisect_right(refreshed, at) - 1]
            points.append((round(at * US), self.joules(known)))
            at += period_us * chance.uniform(0.8, 1.2)
        return series(points)

    def moments(self, period_us: int, pause_us: int, chance: random.Random) -> list[float]:
        """When a meter of the user's is read that now and then has a pause."""
        found, at = [], float(chance.randrange(period_us))
        while at < self.end_us:
            found.append(at)
            at += period_us * chance.uniform(0.8, 1.2) + (chance.uniform(0, pause_us) if chance.random() < 0.02 else 0)
        return found

    def power(self, at_us: float) -> float:
        return self.watts[bisect_right(self.edges_us, at_us) - 1]

    def mean_power(self, moments: list[float]) -> Callable[[float], float]:
        """Since the moment before."""
        before = dict(zip(moments[1:], moments, strict=False))
        return lambda at: (self.joules(at) - self.joules(before.get(at, 0.0))) / (at - before.get(at, 0.0)) * 1e6


@pytest.mark.parametrize("period_us", [1_000, 4_000])
def test_errors_hold_as_often_as_they_say(period_us: int) -> None:
    """95% of those that are told, of machines with any powers and layers of 1 to 40 ms; less 3 standard errors of so
    many, and layers are told in the half of all cases at least."""
    chance, held, told, asked = random.Random(period_us), 0, 0, 0
    for _ in range(60):
        powers = [chance.uniform(20, 90) for _ in NAMES]
        lengths = [round(1000 * 40 ** chance.random()) for _ in NAMES]
        machine = Machine(powers, lengths, 12, chance)
        meters = meters_of(machine.read(1_000, period_us, chance), {"package-0": 1e6})
        found = layer_energies(meters, machine.rows, 12)
        truth = machine.truth()
        asked += len(NAMES)
        for row in found.filter(pl.col("layer") != "net (own)").iter_rows(named=True):
            told += 1
            held += abs(row["joules"] - truth[row["layer"]]) <= row["joules_error"]
            assert row["joules_error"] <= TOO_VAGUE * row["joules"]
    assert told >= asked / 2
    assert held / told >= 0.95 - 3 * (0.95 * 0.05 / told) ** 0.5


@pytest.mark.parametrize("pause_us", [0, 40_000])
@pytest.mark.parametrize("period_us", [1_000, 4_000])
@pytest.mark.parametrize("reads", ["joules", "watts", "mean watts"])
def test_errors_hold_of_a_meter_with_pauses_and_of_one_that_reads_watts(
    reads: str, period_us: int, pause_us: int
) -> None:
    """A pause is a long interval for the edges that lie in it; watts at moments tell nothing of those between, and a
    mean since the last reading is late."""
    chance, held, told = random.Random(period_us + pause_us), 0, 0
    for _ in range(15):
        lengths = [round(1000 * 40 ** chance.random()) for _ in NAMES]
        machine = Machine([chance.uniform(20, 90) for _ in NAMES], lengths, 12, chance)
        moments = machine.moments(period_us, pause_us, chance)
        if reads == "joules":
            readings = series([(round(at * US), machine.joules(at)) for at in moments])
        else:
            watts = machine.power if reads == "watts" else machine.mean_power(moments)
            energy = joules([(round(at * US), watts(at)) for at in moments])
            readings = series(list(zip(energy.times_ns, energy.joules, strict=True)))
        meters = meters_of(readings, {"package-0": 1e-9}, of_power=[] if reads == "joules" else ["package-0"])
        truth = machine.truth()
        for row in layer_energies(meters, machine.rows, 12).filter(pl.col("layer") != "net (own)").to_dicts():
            told += 1
            held += abs(row["joules"] - truth[row["layer"]]) <= row["joules_error"]
    assert told >= 3
    assert held / told >= 0.95 - 3 * (0.95 * 0.05 / told) ** 0.5


def test_of_two_steps_up_the_error_holds_too() -> None:
    """A layer between one of less and one of more power gains at both of its edges."""
    chance = random.Random(5)
    machine = Machine([40.0, 20.0, 60.0] * 2, [20_000] * 6, 20, chance)
    for period_us in (1_000, 2_000):
        energy = joules([(round(at * US), machine.power(at)) for at in machine.moments(period_us, 0, chance)])
        readings = series(list(zip(energy.times_ns, energy.joules, strict=True)))
        truth = machine.truth()
        meters = meters_of(readings, {"package-0": 1e-9}, of_power=["package-0"])
        found = layer_energies(meters, machine.rows, 20)
        assert found.filter(pl.col("layer").is_in(NAMES)).height >= 3
        for row in found.filter(pl.col("layer") != "net (own)").to_dicts():
            assert abs(row["joules"] - truth[row["layer"]]) <= row["joules_error"]


def test_steady_watts_have_no_more_error_than_steady_joules() -> None:
    machine = Machine([50.0] * 6, [20_000] * 6, 10, random.Random(4))
    steady = series([(at * MS, 0.05 * at) for at in range(machine.end_us // 1000)])
    of_power = layer_energies(meters_of(steady, {}, of_power=["package-0"]), machine.rows, 10, idle=False)
    of_energy = layer_energies(meters_of(steady, {}), machine.rows, 10, idle=False)
    assert of_power["joules_error"].to_list() == pytest.approx(of_energy["joules_error"].to_list(), rel=1e-6)


def test_the_idle_power_is_taken_off_and_shares_are_of_the_inference() -> None:
    chance = random.Random(1)
    machine = Machine([50.0, 30.0, 80.0, 50.0, 50.0, 50.0], [30_000] * 6, 20, chance)
    meters = meters_of(machine.read(1_000, 1_000, chance), {"package-0": 1e6})
    found = layer_energies(meters, machine.rows, 20)
    truth = machine.truth()
    for row in found.iter_rows(named=True):
        assert row["windows"] == 20 and row["seconds"] == pytest.approx(0.6, rel=0.1)
        above = truth[row["layer"]] - IDLE_W * row["seconds"]
        assert row["joules_above_idle"] == pytest.approx(above, abs=row["joules_error"] + 0.02 * IDLE_W * 0.6)
        assert row["joules_per_iteration"] == row["joules"] / 20
        assert row["joules_error"] < 0.03 * row["joules"], "20 windows of 30 ms are 600 ms"
    assert found["layer"][0] == "net.2" and found["share"].sum() == pytest.approx(1, abs=0.01)


def test_a_layer_that_is_too_short_for_the_meter_is_not_told() -> None:
    chance = random.Random(2)
    machine = Machine([50.0] * 6, [200, 30_000, 30_000, 30_000, 30_000, 30_000], 3, chance)
    meters = meters_of(machine.read(1_000, 10_000, chance), {"package-0": 1e6})
    found = layer_energies(meters, machine.rows, 3, idle=False)
    assert "net.0" not in found["layer"].to_list() and "net.1" in found["layer"].to_list()
    assert found["joules_above_idle"].null_count() == found.height


def test_modules_of_several_threads_at_a_time_have_none() -> None:
    rows: Spans = [
        (0, None, 0, "stage", "inference", 0, 100 * MS),
        (1, 0, 0, "layer", "net.0", 0, 60 * MS),
        (2, 0, 0, "layer", "net.1", 30 * MS, 90 * MS),
    ]
    meters = meters_of(series([(at * MS, 0.05 * at) for at in range(200)]), {})
    assert isinstance(layer_energy.layer_energies(meters, spans(rows), LAYERS, (0,), {}), Unavailable)
    assert layer_energies([], rows[:2], 1).is_empty()
    assert layer_energies(meters, rows[:1], 1).is_empty(), "no layers"


def test_what_a_clock_may_be_off_by_is_in_the_error() -> None:
    chance = random.Random(3)
    machine = Machine([20.0, 80.0] * 3, [30_000] * 6, 10, chance)
    readings = machine.read(1_000, 1_000, chance)
    exact = layer_energies(meters_of(readings, {}), machine.rows, 10)
    late = layer_energies(meters_of(readings, {}, {"package-0": 1e6}), machine.rows, 10)
    both = exact.join(late, on="layer")
    assert both.height == 6
    step = 30.0  # the mean is 50 W, and the standard deviation as much again
    more = (both["joules_error_right"] ** 2 - both["joules_error"] ** 2).sqrt()
    assert (more > 2 * 10 * step * 1e-3).all() and (more < 2 * 10 * 2 * step * 2e-3).all()


def test_a_module_that_calls_itself_has_the_joules_and_the_error_of_its_outermost_calls() -> None:
    plain: Spans = [
        (0, None, 0, "stage", "inference", 0, 100 * MS),
        (1, 0, 0, "layer", "net.0", 0, 60 * MS),
        (2, 0, 0, "layer", "net.1", 60 * MS, 100 * MS),
    ]
    within: Spans = [(2 + n, n if n == 1 else 1 + n, 0, "layer", "net.0", n * MS, (60 - n) * MS) for n in range(1, 9)]
    meters = meters_of(series([(at * MS, 0.05 * at) for at in range(200)]), {})
    expected = layer_energies(meters, plain, 1, idle=False)
    assert expected.height == 2
    nested = layer_energies(meters, [*plain[:2], *within, (20, *plain[2][1:])], 1, idle=False)
    assert nested.to_dicts() == expected.to_dicts()
