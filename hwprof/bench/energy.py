"""The energy of a case's images, by the machine's meters, which are read while its processes measure."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from hwprof.bench.between_processes import error_of_mean
from hwprof.collector import registry
from hwprof.run.details import EnergyDetail
from hwprof.run.notes import NoteKind
from hwprof.run.roles import Role
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.energy_windows import Meter
    from hwprof.bench.samples import Samples
    from hwprof.collector.contract import Collected

PASS: Final = "bench"
"""As the collectors are told."""


class ZoneEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """Of an image with all stages, the mean, by one meter: what the whole machine's zone took meanwhile.
    ``joules_error``: half of the 95% interval, by the meter and by the spread of the processes."""

    zone: str
    joules: float
    joules_error: float
    watts: float


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """By every meter; why there is none where no meter could be read."""

    zones: list[ZoneEnergy] = []
    absent: Unavailable | None = None


class Reading:
    """The collectors that read energy, from its making on."""

    def __init__(self, options: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
        """``options``: by collector; one that runs on demand does so where it has some. ``folder``: for their files."""
        from hwprof.session.external import ExternalCollectors
        from hwprof.session.plan import CollectorPlan, PassPlan

        found = registry.survey(_names(options))
        plans = tuple(
            CollectorPlan(one.name, dict(options.get(one.name, {})), Role.ENERGY)
            for one in found
            if one.availability.ok
        )
        self._missing = [(one.name, one.availability.unavailable) for one in found if not one.availability.ok]
        plan = PassPlan(name=PASS, iterations=0, warmup=0, in_process=(), external=plans)
        self._running = ExternalCollectors(plan, folder, os.getpid())
        self._folder = folder
        self._collected: list[Collected] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """No meter is read any more."""
        self._collected += [collected for _, collected in self._running.stop()]
        for name in registry.names():
            with suppress(OSError):  # there is none, or it left something there
                (self._folder / name).rmdir()

    def of_images(self, samples: Sequence[Samples], images: int) -> Energy:
        """When they have ended. ``images``: of an iteration."""
        meters = [meter for one in self._collected for meter in _meters(one)]
        zones = [zone for meter in meters if (zone := _of_an_image(meter, samples, images)) is not None]
        return Energy(zones=zones, absent=None if zones else self._why_none())

    def _why_none(self) -> Unavailable:
        failed = [(record.name, record.unavailable) for record in self._running.records]
        notes = [note for one in self._collected for note in one.notes if note.kind is not NoteKind.SCOPE]
        if notes and not failed:
            return Unavailable(f"{notes[0].subject}: {notes[0].text}", notes[0].remedy)
        if self._collected and not failed:
            return Unavailable("its meters' readings cover no value", "--min-time 1")
        for name, why in (*failed, *self._missing):  # of a meter that the user has named, before those of the machine
            if why is not None:
                return Unavailable(f"{name}: {why.reason}", why.remedy)
        return Unavailable("no energy meter was read")


def _names(options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    declared = (one for one in registry.declarations() if one.role is Role.ENERGY)
    return [one.name for one in declared if not one.on_demand or options.get(one.name)]


def _meters(collected: Collected) -> Sequence[Meter]:
    from hwprof.analysis import energy

    series = collected.tables.get("series")
    details = [collected.detail] if isinstance(collected.detail, EnergyDetail) else []
    return energy.meters_read(series, details) if series is not None else []


def _of_an_image(meter: Meter, samples: Sequence[Samples], images: int) -> ZoneEnergy | None:
    """Over all values that its readings cover: None where it covers none. What the machine takes between two values is
    not known, so the power at their edges may step by all of it."""
    import polars as pl

    values = [(process, value) for process, one in enumerate(samples) for value in one.values]
    windows = pl.DataFrame(
        {
            "begin_ns": [value.begin_ns for _, value in values],
            "end_ns": [value.end_ns for _, value in values],
            "iteration": range(len(values)),
            "process": [str(process) for process, _ in values],
            "iterations": [str(len(value.iteration_ns)) for _, value in values],
        },
        schema={"begin_ns": pl.Int64, "end_ns": pl.Int64, "iteration": pl.Int32}
        | dict.fromkeys(("process", "iterations"), pl.String),
    )
    rows = meter.energies(windows, ["process", "iterations"], pl.col("watts")).rows(named=True)
    of = images * sum(int(row["iterations"]) * row["windows"] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    if not of or seconds <= 0:
        return None
    joules = sum(row["joules"] for row in rows)
    by_meter = math.hypot(*(row["joules_error"] for row in rows)) / of
    error = math.hypot(by_meter, error_of_mean(_by_process(rows, images)) or 0.0)
    return ZoneEnergy(zone=meter.zone, joules=joules / of, joules_error=error, watts=joules / seconds)


def _by_process(rows: Sequence[dict[str, Any]], images: int) -> list[float]:
    """Joules of an image."""
    joules: dict[str, float] = {}
    of: dict[str, int] = {}
    for row in rows:
        name = row["process"]
        joules[name] = joules.get(name, 0.0) + row["joules"]
        of[name] = of.get(name, 0) + images * int(row["iterations"]) * row["windows"]
    return [joules[name] / of[name] for name in joules if of[name]]
