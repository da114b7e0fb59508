"""The page of energy: stages, and the layers that take the most."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.report.document.document import Document
from hwprof.report.document.energy import Energy


class HotEnergy(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --energy`` shows: of each zone the layers with the most joules."""

    run: str
    whole: str
    energy: Energy


PAGE: Final = HotEnergy


def select(document: Document, top: int) -> HotEnergy:
    """The ``top`` layers of each zone. Raises ``HwprofError`` where no meter was read."""
    found = document.part(Energy)
    if found is None:
        why = document.absent["energy"]
        raise HwprofError(f"nothing is known of energy in this run: {why.reason}", why.remedy)
    zones = dict.fromkeys(row.zone for row in found.layers)
    layers = [row for zone in zones for row in [one for one in found.layers if one.zone == zone][:top]]
    chosen = msgspec.structs.replace(found, layers=layers)
    return HotEnergy(run=document.run.name, whole=document.whole, energy=chosen)
