"""Intervals of single shares (``statistics`` has them for columns)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:  # who has single shares needs no table library
    import polars as pl

NORMAL_95: Final = 1.959964
"""Standard deviations of a normal distribution between which 95% of it lie."""


Number = TypeVar("Number", float, "pl.Expr")


def wilson(share: float, trials: float) -> tuple[float, float]:
    """The 95% Wilson score interval (lower, upper) of a share that ``trials`` independent draws gave: it stays within 0
    and 1, and holds for few draws and for shares of 0 too. Source: E. B. Wilson, JASA 22 (1927)."""
    low, high = wilson_score(share, trials)
    # a share of 0 or 1 is its interval's end, which rounding may put beside it
    return min(max(min(low, share), 0.0), 1.0), min(max(max(high, share), 0.0), 1.0)


def wilson_score(share: Number, trials: Number) -> tuple[Number, Number]:
    """The formula of ``wilson`` alone, of numbers or of columns; its rounding may lead just out of 0 to 1."""
    squared = NORMAL_95**2
    centre = (share + squared / (2 * trials)) / (1 + squared / trials)
    variance = share * (1 - share) / trials + squared / (4 * trials**2)
    spread = NORMAL_95 / (1 + squared / trials) * variance**0.5
    return centre - spread, centre + spread
