"""What the collector pyspy is, without its code."""

from __future__ import annotations

from typing import Final

from hwprof.collector.declaration import Declaration, Option, OptionType, Place
from hwprof.run.passes import TRACE
from hwprof.run.roles import Role

RATE: Final = 100
"""Of py-spy itself, by default."""

DECLARATION = Declaration(
    name="pyspy",
    summary="Python's call stacks over time, by thread (py-spy)",
    implementation="collectors.pyspy.collector:PySpyCollector",
    place=Place.IN_PROCESS,
    role=Role.PYTHON,
    passes=frozenset({TRACE}),
    options=(
        Option(
            "pyspy_passes",
            "The passes in which py-spy looks at Python's stacks. Default: trace.",
            OptionType.PASSES,
            metavar="LIST",
        ),
        Option(
            "pyspy_rate",
            "How often a second py-spy looks. Default: 100.",
            OptionType.INTEGER,
            metavar="HZ",
            default=RATE,
            minimum=1,
        ),
        Option(
            "pyspy_native",
            "Frames of native libraries as well: py-spy then stops the process at each look.",
            OptionType.FLAG,
        ),
        Option(
            "pyspy_blocking",
            "Stop the process at each look: no stack is torn, and the work is slower.",
            OptionType.FLAG,
        ),
    ),
)
