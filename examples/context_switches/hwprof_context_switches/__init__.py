"""What the collector is: hwprof reads this for its help, so nothing heavy is imported."""

from hwprof.collector.declaration import Declaration, Option, OptionType, Place

DECLARATION = Declaration(
    name="context_switches",
    summary="the worker's context switches over time",
    implementation="hwprof_context_switches.collector:ContextSwitches",
    place=Place.EXTERNAL,
    options=(
        Option("switch_period", "Between two readings.", OptionType.INTEGER, metavar="MS", default=50, minimum=1),
    ),
)
