"""Which batches of a large source an iteration takes: those that tell as much of it in a second as all would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

FEW: Final = 4
"""A source of no more batches is taken as a whole."""

ENOUGH_S: Final = 1.0
"""Of forwards, for an iteration."""

MOST_S: Final = 5.0
"""What an iteration may take so that each input shape occurs in it."""

ENOUGH_CALLS: Final = 4_000
"""Of modules, for an iteration: each is counted, traced and instrumented, which takes room whatever it does."""

MOST_CALLS: Final = 20_000
"""As ``MOST_S``."""


def enough(batches: int, shapes: int, once_s: float, calls: int) -> int:
    """How many of ``batches`` an iteration takes whose forward takes ``once_s`` and calls so many modules: all of a
    few; else the power of two that ``ENOUGH_S`` and ``ENOUGH_CALLS`` have room for, since two runs of one source should
    take the same; ``FEW`` at least, and one of each of the ``shapes`` where ``MOST_S`` and ``MOST_CALLS`` allow."""
    if batches <= FEW:
        return batches
    fit = min(int(ENOUGH_S / once_s), ENOUGH_CALLS // calls)
    fitting = 1 << fit.bit_length() - 1 if fit else 0
    each = min(shapes, int(MOST_S / once_s), MOST_CALLS // calls)
    return min(batches, max(FEW, fitting, each))


def in_proportion(shapes: Sequence[Hashable], number: int) -> list[int]:
    """The places of ``number`` of them, in order: each shape as often as its share of all says (largest remainders,
    Hamilton's method), yet once at least; where there are more shapes than that, the most frequent. Those of a shape
    lie evenly among all of its."""
    seats = _seats(Counter(shapes), min(number, len(shapes)))
    places: dict[Hashable, list[int]] = {shape: [] for shape in seats}
    for place, shape in enumerate(shapes):
        if shape in places:
            places[shape].append(place)
    return sorted(
        places[shape][(2 * turn + 1) * len(places[shape]) // (2 * seats[shape])]
        for shape in seats
        for turn in range(seats[shape])
    )


def _seats(frequency: Counter[Hashable], number: int) -> dict[Hashable, int]:
    """How often each shape is taken: ``number`` in all."""
    taken = [shape for shape, _ in frequency.most_common(number)]
    total, further = sum(frequency[shape] for shape in taken), number - len(taken)
    # each has its one; the others go to those that are furthest below their share
    shares = {shape: frequency[shape] * number / total for shape in taken}
    seats = dict.fromkeys(taken, 1)
    for shape in taken:
        more = min(int(max(shares[shape] - 1, 0)), further)
        seats[shape] += more
        further -= more
    for shape in sorted(taken, key=lambda shape: seats[shape] - shares[shape])[:further]:
        seats[shape] += 1
    return seats
