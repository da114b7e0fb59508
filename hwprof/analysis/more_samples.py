"""What brings enough samples where there were too few."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from hwprof.analysis.samples import FEW_SAMPLES

if TYPE_CHECKING:
    from hwprof.analysis.sampled_pass import SampledPass

FASTER: Final = 4
"""How many times the frequency is proposed."""

ENOUGH: Final = 4 * FEW_SAMPLES
"""So many are aimed at: chance may bring fewer, and from 16 or so the error is half of the figure."""

TIMED: Final = 1.5
"""Iterations to ask for, for one that is timed and does not count: those that samples are taken in."""

MEASURED: Final = 20
"""Iterations of the measure pass where nobody asks for another number."""


def faster(sampled: SampledPass) -> str:
    """The option."""
    frequency_hz = sampled.detail.frequency_hz if sampled.detail is not None else None
    return f"--frequency {FASTER * frequency_hz + 3}" if frequency_hz else "a higher --frequency"


def more_samples(sampled: SampledPass, number: int) -> str:
    """What brings ``ENOUGH`` where there were ``number``: a higher frequency, and where that is not enough more
    iterations, of which the trace pass does not do more."""
    more = ENOUGH / max(number, 1) / FASTER
    if more <= 1:
        return faster(sampled)
    iterations = max(MEASURED, math.ceil(TIMED * more * len(sampled.iterations)))
    return f"{faster(sampled)} --sample-passes measure --iterations {iterations}"
