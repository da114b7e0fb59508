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

    zone: str
    stage: str
    windows: int
    seconds: float
    joules: float
    joules_error: float | None
    watts: float | None
    watts_error: float | None
    idle_watts: float | None
    joules_above_idle: float | None
    joules_per_iteration: float
    images_per_joule: float | None = None  # of the inference, and of the pipeline; the relative error is the joules'
    gflop_per_joule: float | None = None  # of the inference: analytic, two a MAC


class Energy(Part, kw_only=True, frozen=True):
    """By zone and stage."""

    rows: list[StageEnergy]


PART: Final = Energy


def build(analysis: RunAnalysis) -> Energy | Unavailable:
    """From the main pass."""
    if analysis.energy is None:
        return Unavailable("no pass was completed")
    rows = [StageEnergy(**row) for row in analysis.energy.iter_rows(named=True)]
    return Energy(rows=rows) if rows else Unavailable("no energy meter was read")
