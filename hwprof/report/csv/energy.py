"""``energy.csv``: joules and watts of the stages."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.energy import Energy, StageEnergy

HEADERS: Final = {
    "seconds": "duration_seconds",
    "watts": "power_watts",
    "watts_error": "power_error_watts",
    "idle_watts": "idle_power_watts",
    "joules": "energy_joules",
    "joules_error": "energy_error_joules",
    "joules_above_idle": "energy_above_idle_joules",
    "joules_per_iteration": "energy_per_iteration_joules",
}


def files(document: Document) -> dict[str, Table]:
    """A row a zone and stage."""
    part = document.part(Energy)
    return {} if part is None else {"energy.csv": columns_of(part.rows, fields_of(StageEnergy), HEADERS)}
