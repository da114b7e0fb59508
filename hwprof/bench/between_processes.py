"""How far a case's processes lie apart: what pyperf starts several for. Iterations of one process share what it got, as
where its memory lies, so that a thousand of them are no thousand draws. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from hwprof.analysis.intervals import student_95


def error_of_mean(values: Sequence[float]) -> float | None:
    """Half of the 95% interval (Student's) of the mean of one value a process; None: one process tells nothing."""
    if len(values) < 2:
        return None
    return student_95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def error_of_ratio(over: Sequence[float], under: Sequence[float]) -> float | None:
    """Half of the 95% interval of a ratio of two times, as a part of it, by each process's own: of their logarithms, by
    Welch's t with Satterthwaite's degrees of freedom. None where one of them has one process, or no time."""
    if min(len(over), len(under)) < 2 or min(*over, *under) <= 0:
        return None
    squared = [statistics.variance(map(math.log, values)) / len(values) for values in (over, under)]
    if not sum(squared):
        return 0.0
    terms = sum(one**2 / (len(values) - 1) for one, values in zip(squared, (over, under), strict=True))
    return student_95(sum(squared) ** 2 / terms) * math.sqrt(sum(squared))
