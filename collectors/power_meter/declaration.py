"""What the collector power_meter is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Option, Place
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="power_meter",
    summary="watts of a meter of yours: a program that prints them, or a file (--power-command, --power-file)",
    implementation="collectors.power_meter.collector:PowerMeterCollector",
    place=Place.EXTERNAL,
    role=Role.ENERGY,
    on_demand=True,
    wants_idle=True,
    options=(
        Option(
            "power_command",
            "A program that prints a power meter's watts, a line each: '36.5', or '1790000000.25 36.5' (unix time, or"
            " ISO 8601). It runs as long as each pass.",
            metavar="COMMAND",
            asks=True,
        ),
        Option(
            "power_file",
            "A file to which another program writes such lines, with times, until each pass ends.",
            metavar="FILE",
            asks=True,
        ),
    ),
)
