"""How much a remedy changes a time, and how sure that is.

What varies is mostly the process: where its memory lies, which pages are huge. So each generation of fresh processes
gives one figure, the ratio of the times with and without of what was measured in turn, and the interval is Student's of
the logarithms of these: 5 generations with a standard deviation of 1% are ±1.2%.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

from hwprof.analysis.intervals import student_95
from hwprof.run.trials import MOST_CHANGE, Change

LEAST_GENERATIONS: Final = 3
"""Of two, Student's interval is 12.7 standard errors wide on either side."""

BY_ALL: Final = 2.6
"""With it three to six remedies without effect, of 0.5 to 2% a process, are told to have one in 2 to 4% of cases
(simulated; without it in 5 to 9%)."""

NARROW: Final = 0.01
NARROW_OF_CHANGE: Final = 0.1
"""Half an interval that is as narrow as this, or as this part of the change, is enough."""


LEAST_CALLS: Final = 4
"""Of a turn: of fewer nobody knows whether they are long and short in turn."""

OTHER: Final = 1.5
"""Times as long as the others are every second call of another kind."""

MOST_LOG: Final = math.log(MOST_CHANGE)
"""Of two generations that have nothing in common the interval has no end that could be written."""


class Pair(NamedTuple):
    """One generation's times."""

    with_ns: float
    without_ns: float


def undisturbed(turns_ns: Sequence[Sequence[float]]) -> float:
    """The first quartile of the calls of all turns: whoever else is at work on the machine only makes times longer. Of
    a model whose calls are long and short in turn the mean of both kinds' quartiles: that of all would be of the short
    ones, whatever became of the long ones."""
    kinds = _in_turn(turns_ns)
    return statistics.fmean(sorted(times)[(len(times) - 1) // 4] for times in kinds)


def _in_turn(turns_ns: Sequence[Sequence[float]]) -> list[list[float]]:
    """All calls; where every second one is another kind, in most of the turns, both kinds."""
    pairs = [sorted((turn[::2], turn[1::2]), key=statistics.median) for turn in turns_ns if len(turn) >= LEAST_CALLS]
    if pairs and statistics.median(statistics.median(long) / statistics.median(short) for short, long in pairs) > OTHER:
        return [[ns for pair in pairs for ns in pair[place]] for place in (0, 1)]
    return [[ns for turn in turns_ns for ns in turn]]


def spread(remedies: Sequence[Sequence[Pair]]) -> float | None:
    """The median of the remedies' standard deviations (of logarithms): one that varies much, as another allocator does,
    says nothing of the others. None where no remedy has two generations."""
    known = [statistics.stdev(_logs(pairs)) for pairs in remedies if len(pairs) > 1 and _whole(pairs)]
    return statistics.median(known) if known else None


def change(pairs: Sequence[Pair], of_all: float | None = None) -> Change | None:
    """None of fewer than two generations: how much it varies nobody has seen. ``of_all``: the ``spread`` of a campaign;
    an interval is no narrower than ``BY_ALL`` standard errors by it. Who stops as soon as one is narrow stops at those
    that are so by chance: of three generations that are alike."""
    if len(pairs) < 2 or not _whole(pairs):
        return None
    logs = _logs(pairs)
    middle = statistics.fmean(logs)
    error = max(student_95(len(logs) - 1) * statistics.stdev(logs), BY_ALL * (of_all or 0.0))
    half = error / math.sqrt(len(logs))
    value, low, high = (math.expm1(min(one, MOST_LOG)) for one in (middle, middle - half, middle + half))
    return Change(value=value, low=low, high=high)


def _whole(pairs: Sequence[Pair]) -> bool:
    return all(min(pair) > 0 for pair in pairs)


def _logs(pairs: Sequence[Pair]) -> list[float]:
    return [math.log(pair.with_ns / pair.without_ns) for pair in pairs]


def is_enough(found: Change | None, generations: int) -> bool:
    """Whether more of them are not worth their time: it is known well enough, or to make it worse."""
    if found is None or generations < LEAST_GENERATIONS:
        return False
    half = (found.high - found.low) / 2
    return found.low > NARROW or half <= max(NARROW, NARROW_OF_CHANGE * abs(found.value))
