"""What the collector sampler is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Option, OptionType, Place
from hwprof.run.passes import TRACE
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="sampler",
    summary="which code every thread was in, and when it waited (perf's samples)",
    implementation="collectors.sampler.collector:SamplerCollector",
    place=Place.EXTERNAL,
    role=Role.SAMPLER,
    passes=frozenset({TRACE}),
    options=(
        Option(
            "frequency",
            "How often the sampler looks at each thread, in a second of its processor time. Default: 999.",
            OptionType.INTEGER,
            metavar="HZ",
            minimum=1,
        ),
        Option(
            "sample_passes",
            "In which passes the sampler runs. Default: trace; measure,trace shows what sampling costs.",
            OptionType.PASSES,
            metavar="LIST",
        ),
    ),
)
