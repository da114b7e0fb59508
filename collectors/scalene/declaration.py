"""What the collector scalene is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Option, OptionType, Place
from hwprof.run.roles import Role

PASS = "scalene"
LIMIT_S = 600

DECLARATION = Declaration(
    name="scalene",
    summary="time, memory and copying by line of Python (Scalene)",
    implementation="collectors.scalene.collector:ScaleneCollector",
    place=Place.LAUNCHER,
    role=Role.LINES,
    passes=frozenset({PASS}),
    own_passes=True,
    on_demand=True,
    full=(),
    options=(
        Option(
            "scalene",
            "A pass under Scalene: time, memory and copying by line of Python. It takes about as long as the"
            " measure pass.",
            OptionType.FLAG,
            asks=True,
        ),
        Option(
            "scalene_limit",
            "How long the pass under Scalene may take. Default: 600.",
            OptionType.INTEGER,
            metavar="SECONDS",
            default=LIMIT_S,
            minimum=1,
        ),
    ),
)
