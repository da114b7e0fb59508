"""What the collector core_clock is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Place

DECLARATION = Declaration(
    name="core_clock",
    summary="the core's frequency at the edges of iterations, by instructions of known latency",
    implementation="collectors.core_clock.collector:CoreClockCollector",
    place=Place.IN_PROCESS,
)
