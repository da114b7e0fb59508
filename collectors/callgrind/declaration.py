"""What the collector callgrind is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Option, OptionType, Place
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="callgrind",
    summary="instructions by layer and function under valgrind (SSE4.1, one thread), simulated cache misses",
    implementation="collectors.callgrind.collector:CallgrindCollector",
    place=Place.LAUNCHER,
    role=Role.COUNTER,
    passes=frozenset({"callgrind"}),
    own_passes=True,
    metrics="collectors.callgrind.events:every_metric",
    options=(
        Option(
            "cache_sim",
            "callgrind also simulates this machine's caches: several times slower.",
            OptionType.FLAG,
        ),
    ),
)
