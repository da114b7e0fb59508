"""What the collector papi is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Place
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="papi",
    summary="PAPI's presets and native events of every thread, per layer",
    implementation="collectors.papi.collector:PapiCollector",
    place=Place.IN_PROCESS,
    role=Role.COUNTER,
)
