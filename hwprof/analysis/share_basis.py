"""When shares of layers are made of their median times, and when of mean ones."""

from __future__ import annotations

from typing import Final

UNEVEN: Final = 0.3
"""So much the sum of medians may differ from the whole's for shares to be made of medians: other programs make it
differ by less, as a rule."""


def is_uneven(sum_ns: float, whole_ns: float) -> bool:
    """Whether medians of all rows add up to far less than the whole's (layers take long in turn, and none of them in
    most iterations) or far more (they overlap in time)."""
    return abs(sum_ns / whole_ns - 1) > UNEVEN
