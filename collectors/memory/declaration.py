"""What the collector memory is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Place
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="memory",
    summary="resident memory and page faults over time",
    implementation="collectors.memory.collector:MemoryCollector",
    place=Place.EXTERNAL,
    role=Role.MEMORY,
)
