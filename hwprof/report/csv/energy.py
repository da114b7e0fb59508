"""``energy.csv``: each call of a stage, in the form of pyJoules' files, with the error; ``energy_stages.csv`` and
``energy_layers.csv``: joules and watts of the stages and of the layers."""

from __future__ import annotations

import re
from typing import Final

from hwprof.report.csv.table import ZONE, Columns, Field, File, Table, of_struct, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.energy import Energy, EnergyCall, LayerEnergy, StageEnergy

HEADERS: Final = {
    "seconds": "duration_seconds",
    "watts": "power_watts",
    "watts_error": "power_error_watts",
    "idle_watts": "idle_power_watts",
    "idle_error": "idle_power_error_watts",
    "above_idle_error": "energy_above_idle_error_joules",
    "joules": "energy_joules",
    "joules_error": "energy_error_joules",
    "joules_above_idle": "energy_above_idle_joules",
    "joules_per_iteration": "energy_per_iteration_joules",
    "share": "share_ratio",
}

OF_STAGES: Final = of_struct(StageEnergy, HEADERS)
OF_LAYERS: Final = of_struct(LayerEnergy, HEADERS)
OF_CALLS: Final[Columns] = {
    "timestamp": "when the call began, seconds of unix time",
    "tag": Field(EnergyCall, "stage"),
    "duration": "seconds",
    ZONE: "microjoules in this domain, as pyJoules calls it: package_0, dram_0, core_0",
    f"{ZONE}_error": "the error of these, microjoules",
}
FILES: Final = (
    File("energy_stages.csv", "a stage and an energy zone", OF_STAGES),
    File("energy_layers.csv", "a layer, or a module's own code, and an energy zone", OF_LAYERS),
    File("energy.csv", "a call of a stage, in the form of pyJoules' files: separated by semicolons", OF_CALLS),
)

PACKAGE: Final = re.compile(r"package-(\d+)(?:/(\w+))?")
"""A zone of RAPL; the part of the package, where it is not all of it."""


def files(document: Document) -> dict[str, Table]:
    """Nothing where no meter was read."""
    part = document.part(Energy)
    if part is None:
        return {}
    found = {"energy_stages.csv": table_of(part.rows, OF_STAGES)}
    if part.layers:
        found["energy_layers.csv"] = table_of(part.layers, OF_LAYERS)
    if part.calls:
        found["energy.csv"] = _calls(part.calls)
    return found


def _calls(calls: list[EnergyCall]) -> Table:
    """As pyJoules writes it: ``timestamp;tag;duration`` in seconds (unix time), then a column a domain, in microjoules;
    with one more each for the error."""
    rows: dict[tuple[int, str, float], dict[str, EnergyCall]] = {}
    for call in calls:
        rows.setdefault((call.unix_ns, call.stage, call.seconds), {})[call.zone] = call
    columns: dict[str, list[float | str | None]] = {
        "timestamp": [unix_ns / 1e9 for unix_ns, _, _ in rows],
        "tag": [stage for _, stage, _ in rows],
        "duration": [seconds for _, _, seconds in rows],
    }
    for zone in dict.fromkeys(call.zone for call in calls):
        known = [by_zone.get(zone) for by_zone in rows.values()]
        columns[domain(zone)] = [one.joules * 1e6 if one else None for one in known]
        columns[f"{domain(zone)}_error"] = [one.joules_error * 1e6 if one else None for one in known]
    return Table(columns, delimiter=";")


def domain(zone: str) -> str:
    """A zone as pyJoules calls it: ``package_0``, ``dram_0``, ``core_0``; others as they are."""
    package = PACKAGE.fullmatch(zone)
    return f"{package[2] or 'package'}_{package[1]}" if package else zone
