"""What the collector callgrind is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Option, OptionType, Place
from hwprof.run.roles import Role

LIMIT_S = 900

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
        Option(
            "callgrind_limit",
            f"How long the pass under callgrind may go without a step (a layer called): then it hangs, and is ended."
            f" Default: {LIMIT_S}.",
            OptionType.INTEGER,
            metavar="SECONDS",
            default=LIMIT_S,
            minimum=1,
        ),
    ),
)
