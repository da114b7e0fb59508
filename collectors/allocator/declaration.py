"""What the collector allocator is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Place
from hwprof.run.passes import TRACE
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="allocator",
    summary="what malloc holds: in use, free, mapped (glibc, jemalloc, tcmalloc)",
    implementation="collectors.allocator.collector:AllocatorCollector",
    place=Place.IN_PROCESS,
    role=Role.MEMORY,
    passes=frozenset({TRACE}),
)
