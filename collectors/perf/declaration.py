"""What the collector perf is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Place
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="perf",
    summary="hardware and software counters of every thread, per layer",
    implementation="collectors.perf.collector:PerfCollector",
    place=Place.IN_PROCESS,
    role=Role.COUNTER,
    preferred=True,
)
