"""What the collector uncore is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Place
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="uncore",
    summary="DRAM traffic of the whole machine over time",
    implementation="collectors.uncore.collector:UncoreCollector",
    place=Place.EXTERNAL,
    role=Role.DRAM,
)
