"""Joules and watts of the stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class StageEnergy(msgspec.Struct, kw_only=True, frozen=True):
    """Energy of a zone (of the whole machine) during a stage, over the timed and counting iterations. Measured."""

    zone: str  # of the meter: package-0, dram, psys
    stage: str  # during which
    windows: int  # stretches of time that were metered
    seconds: float  # of all of them
    joules: float  # of all of them
    joules_error: float | None  # half of its 95% interval
    watts: float | None  # joules over seconds
    watts_error: float | None  # half of its 95% interval
    idle_watts: float | None  # while the process rested
    idle_error: float | None  # half of its 95% interval, W
    joules_above_idle: float | None  # what is more than idle power would have taken
    above_idle_error: float | None  # half of its 95% interval, J
    joules_per_iteration: float  # in one of them
    images_per_joule: float | None = None  # of the inference, and of the pipeline; the relative error is the joules'
    gflop_per_joule: float | None = None  # of the inference: analytic, two a MAC


class LayerEnergy(msgspec.Struct, kw_only=True, frozen=True):
    """Energy of a zone (of the whole machine) while a layer ran, or a module's own code, over the same iterations."""

    zone: str  # of the meter: package-0, dram, psys
    path: str  # of the layer; NAME (own): what a module does itself
    windows: int  # that it ran in
    seconds: float  # of all of them
    joules: float  # of all of them
    joules_error: float  # half of its 95% interval
    joules_per_iteration: float  # in one of them
    watts: float  # joules over seconds
    watts_error: float  # half of its 95% interval
    joules_above_idle: float | None  # what is more than idle power would have taken
    above_idle_error: float | None  # half of its 95% interval, J
    share: float | None  # of the whole's energy
    gflop_per_joule: float | None = None  # analytic, two a MAC


class EnergyCall(msgspec.Struct, kw_only=True, frozen=True):
    """Energy of a zone during one call of a stage."""

    unix_ns: int  # when it began
    stage: str  # the stage
    iteration: int
    zone: str
    seconds: float
    joules: float
    joules_error: float


class Energy(Part, kw_only=True, frozen=True):
    """By zone and stage; by zone and layer, most joules first; by call of a stage, in order of time."""

    rows: list[StageEnergy]
    layers: list[LayerEnergy] = msgspec.field(default_factory=list)
    missing_layers: Unavailable | None = None
    calls: list[EnergyCall] = msgspec.field(default_factory=list)
    too_vague: float = 0.0  # above this share of its joules in error a layer has none
    too_short: int = 0  # layers that have none for this reason


PART: Final = Energy


def build(analysis: RunAnalysis) -> Energy | Unavailable:
    """From the main pass."""
    if analysis.energy.stages is None:
        return Unavailable("no pass was completed")
    from hwprof.analysis.layer_energy import TOO_VAGUE

    rows = [StageEnergy(**row) for row in analysis.energy.stages.iter_rows(named=True)]
    if not rows:
        return _why_none(analysis)
    found = analysis.energy.layers
    missing = found if isinstance(found, Unavailable) else None
    table = None if isinstance(found, Unavailable) else found.rename({"layer": "path"})
    layers = [LayerEnergy(**row) for row in table.iter_rows(named=True)] if table is not None else []
    clock = analysis.run.manifest.clock
    to_unix_ns = clock.realtime_ns - clock.monotonic_ns
    calls = analysis.energy.calls.with_columns(unix_ns=analysis.energy.calls["begin_ns"] + to_unix_ns).drop("begin_ns")
    return Energy(
        rows=rows,
        layers=layers,
        missing_layers=missing,
        calls=[EnergyCall(**row) for row in calls.iter_rows(named=True)],
        too_vague=TOO_VAGUE,
        too_short=analysis.energy.layers_without,
    )


def _why_none(analysis: RunAnalysis) -> Unavailable:
    """Why the first of those that read meters did not."""
    from hwprof.run.notes import NoteKind
    from hwprof.run.roles import Role

    for record in analysis.run.manifest.passes:
        for one in record.collectors:
            if one.role is Role.ENERGY and one.unavailable is not None:
                return Unavailable(f"{one.name}: {one.unavailable.reason}", one.unavailable.remedy)
            lacking = [note for note in one.notes if note.kind is NoteKind.NOT_AVAILABLE]
            if one.role is Role.ENERGY and lacking:
                return Unavailable(f"{one.name}: {lacking[0].subject}: {lacking[0].text}", lacking[0].remedy)
            if one.role is Role.ENERGY and one.detail is not None:
                return Unavailable(f"{one.name}: its readings cover no iteration", "a meter that reads until the end")
    return Unavailable("no energy meter was read")
