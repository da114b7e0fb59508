"""What the collector cprofile is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Option, OptionType, Place
from hwprof.run.passes import TRACE
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="cprofile",
    summary="every call of Python's functions, by stage (cProfile)",
    implementation="collectors.cprofile.collector:CProfileCollector",
    place=Place.IN_PROCESS,
    role=Role.CALLS,
    passes=frozenset({TRACE}),
    on_demand=True,
    full=(),
    options=(
        Option(
            "cprofile",
            "Three more iterations at the end of the trace pass under cProfile: calls, self and cumulative time of"
            " Python's functions by stage. No other figure is made of them.",
            OptionType.FLAG,
            asks=True,
        ),
    ),
)
