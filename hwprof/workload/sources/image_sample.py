"""Which batches of a large source an iteration takes: those that tell as much of it in a second as all would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

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


ALIKE: Final = 0.01
"""So much the average image that is taken may be larger or smaller than that of all."""


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


def in_proportion(shapes: Sequence[Hashable], numbers: range, pixels: Callable[[Any], int]) -> list[int]:
    """The places of so many of them, in order: of the fewest whose average image is like that of all, to ``ALIKE``, or
    of those that come nearest. Each shape comes as often as its share of all says, yet once at least where that leaves
    the average alike. Those of a shape lie evenly among all of its."""
    frequency = Counter(shapes)
    wanted = _mean(frequency, pixels)
    best, least = dict[Hashable, int](), float("inf")
    for further in dict.fromkeys(min(number, len(shapes)) for number in numbers):
        for each in (1, 0):
            seats = _seats(frequency, further, each)
            apart = abs(_mean(seats, pixels) / wanted - 1)
            if apart < least:
                best, least = seats, apart
            if apart <= ALIKE:
                return _places(shapes, seats)
    return _places(shapes, best)


def more_pixels(shapes: Sequence[Hashable], places: Sequence[int], pixels: Callable[[Any], int]) -> float:
    """By which share those at these places have more pixels on average than all."""
    return _mean(Counter(shapes[place] for place in places), pixels) / _mean(Counter(shapes), pixels) - 1


def _mean(frequency: Mapping[Any, int], pixels: Callable[[Any], int]) -> float:
    return sum(pixels(shape) * count for shape, count in frequency.items()) / sum(frequency.values())


def _places(shapes: Sequence[Hashable], seats: Mapping[Hashable, int]) -> list[int]:
    places: dict[Hashable, list[int]] = {shape: [] for shape, number in seats.items() if number}
    for place, shape in enumerate(shapes):
        if shape in places:
            places[shape].append(place)
    return sorted(
        found[(2 * turn + 1) * len(found) // (2 * seats[shape])]
        for shape, found in places.items()
        for turn in range(seats[shape])
    )


def _seats(frequency: Counter[Hashable], number: int, each: int) -> dict[Hashable, int]:
    """How often each shape is taken, ``number`` in all: by largest remainders (Hamilton's method), ``each`` at least,
    of the most frequent where there are more shapes than places."""
    taken = [shape for shape, _ in frequency.most_common(number if each else None)]
    total, further = sum(frequency[shape] for shape in taken), number - each * len(taken)
    # each has its one; the others go to those that are furthest below their share
    shares = {shape: frequency[shape] * number / total for shape in taken}
    seats = dict.fromkeys(taken, each)
    for shape in taken:
        more = min(int(max(shares[shape] - each, 0)), further)
        seats[shape] += more
        further -= more
    for shape in sorted(taken, key=lambda shape: seats[shape] - shares[shape])[:further]:
        seats[shape] += 1
    return seats
