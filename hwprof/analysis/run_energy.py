"""What several sections of a report need of a run's energy."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from hwprof.analysis import energy, layer_energy
from hwprof.analysis.energy_windows import Meter
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.run.details import EnergyDetail
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class EnergyAnalysis:
    """Made once for a run; of its main pass."""

    def __init__(self, analysis: RunAnalysis) -> None:
        self._analysis = analysis

    @cached_property
    def _meters(self) -> list[Meter]:
        """Those of the main pass."""
        collectors = self._analysis.main.collectors if self._analysis.main is not None else []
        details = (detail for one in collectors if (detail := one.detail_as(EnergyDetail)) is not None)
        return energy.meters_read(self._analysis.series(energy.ENERGY_PREFIX), details)

    @cached_property
    def layers(self) -> pl.DataFrame | Unavailable:
        """Energy by zone and layer in the main pass, as ``layer_energy.layer_energies`` makes it."""
        if self._analysis.measured is None or not self._meters:
            return pl.DataFrame(schema=layer_energy.SCHEMA)
        iterations, spans = self._analysis.measured.attribution.iterations.all, self._analysis.measured.spans
        idle = energy.idle_watts(self._meters, spans)
        return layer_energy.layer_energies(self._meters, spans, self._analysis.modules, iterations, idle)

    @cached_property
    def calls(self) -> pl.DataFrame:
        """Energy by zone and call of a stage in the main pass, as ``energy.calls`` makes it."""
        if self._analysis.measured is None:
            return pl.DataFrame(schema=energy.CALLS)
        return energy.calls(
            self._meters, self._analysis.measured.spans, self._analysis.measured.attribution.iterations.all
        )

    @property
    def layers_without(self) -> int:
        """Rows of layers that ``layers`` says nothing of, where it is there."""
        found = self.layers
        if self._analysis.figures is None or isinstance(found, Unavailable):
            return 0
        owners = self._analysis.figures.layers.rows.filter(~pl.col("owner").is_in([WHOLE, UNATTRIBUTED]))["owner"]
        return int((~owners.is_in(found["layer"].unique().implode())).sum())

    @cached_property
    def stages(self) -> pl.DataFrame | None:
        """Energy by zone and stage in the main pass, as ``energy.with_efficiency`` makes it."""
        if self._analysis.measured is None or self._analysis.figures is None:
            return None
        iterations = self._analysis.measured.attribution.iterations.all
        found = energy.energy_table(self._meters, self._analysis.measured.spans, iterations)
        whole = self._analysis.figures.layers.rows.filter(owner=WHOLE)["macs"]
        images = len(self._analysis.run.manifest.workload.sources) if self._analysis.run.manifest.workload else 0
        return energy.with_efficiency(found, images or None, whole[0] if whole.len() else None)
