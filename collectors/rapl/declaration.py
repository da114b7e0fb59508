"""What the collector rapl is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Option, OptionType, Place
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="rapl",
    summary="energy of packages, cores and memory",
    implementation="collectors.rapl.collector:RaplCollector",
    place=Place.EXTERNAL,
    role=Role.ENERGY,
    wants_idle=True,
    options=(
        Option(
            "power_period",
            "Between two readings of the energy counters. Default: as often as they change, for 1% of the processors.",
            OptionType.INTEGER,
            metavar="MS",
            minimum=1,
        ),
    ),
)
