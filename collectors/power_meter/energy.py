"""From watts at moments to joules since the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Energy(NamedTuple):
    """``joules`` at ``times_ns``, which ascend; ``backwards``: readings that were earlier than the one before;
    ``at_once``: at the same time."""

    times_ns: list[int]
    joules: list[float]
    backwards: int
    at_once: int


def joules(readings: Sequence[tuple[int, float]]) -> Energy:
    """Of (time in ns, watts): the power between two readings is taken to lie on a line. Readings whose time goes back
    are left out."""
    times_ns: list[int] = []
    sums: list[float] = []
    last_watts, backwards, at_once = 0.0, 0, 0
    for time_ns, watts in readings:
        if times_ns and time_ns <= times_ns[-1]:
            backwards += time_ns < times_ns[-1]
            at_once += time_ns == times_ns[-1]
            continue
        sums.append(sums[-1] + (last_watts + watts) / 2 * (time_ns - times_ns[-1]) / 1e9 if sums else 0.0)
        times_ns.append(time_ns)
        last_watts = watts
    return Energy(times_ns, sums, backwards, at_once)
