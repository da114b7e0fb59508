"""What the collector instrumented is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Option, OptionType, Place
from hwprof.run.roles import Role

LIMIT_S = 600

DECLARATION = Declaration(
    name="instrumented",
    summary="exact instructions, FLOPs, loads and stores of instrumented code, per layer and kernel, without a PMU",
    implementation="collectors.instrumented.collector:InstrumentedCollector",
    place=Place.IN_PROCESS,
    role=Role.COUNTER,
    passes=frozenset({"instrumented"}),
    own_passes=True,
    fallback=True,
    full=(("cache_model", True),),
    metrics="collectors.instrumented.metrics:every",
    options=(
        Option(
            "cache_model",
            "Simulate this machine's caches: every memory access of the instrumented code goes through a model, by"
            " layer and kernel. 10 to 25 times slower than the code itself, for two iterations.",
            OptionType.FLAG,
            asks=True,
        ),
        Option(
            "cache",
            "The same with other caches, what if this ran on that processor: l1=48K/12,l2=2M/16,llc=32M/16 (size and"
            " ways; levels left out are this machine's).",
            metavar="LIST",
            asks=True,
        ),
        Option(
            "instrumented_limit",
            f"How long the instrumented pass may go without a step (a layer called): then it hangs, and is ended."
            f" Default: {LIMIT_S}.",
            OptionType.INTEGER,
            metavar="SECONDS",
            default=LIMIT_S,
            minimum=1,
        ),
    ),
)
