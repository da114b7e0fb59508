"""Intervals of single shares (``statistics`` has them for columns)."""

from __future__ import annotations

import math
from typing import Final

NORMAL_95: Final = 1.959964
"""Standard deviations of a normal distribution between which 95% of it lie."""


def wilson(share: float, trials: float) -> tuple[float, float]:
    """The 95% Wilson score interval (lower, upper) of a share that ``trials`` independent draws gave: it stays within 0
    and 1, and holds for few draws and for shares of 0 too. Source: E. B. Wilson, JASA 22 (1927)."""
    squared = NORMAL_95**2
    centre = (share + squared / (2 * trials)) / (1 + squared / trials)
    spread = NORMAL_95 / (1 + squared / trials) * math.sqrt(share * (1 - share) / trials + squared / (4 * trials**2))
    # a share of 0 or 1 is its interval's end, which rounding may put beside it
    return min(max(min(centre - spread, share), 0.0), 1.0), min(max(max(centre + spread, share), 0.0), 1.0)
