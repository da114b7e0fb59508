"""Intervals of single shares (``statistics`` has them for columns)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:  # who has single shares needs no table library
    import polars as pl

NORMAL_95: Final = 1.959964
"""Standard deviations of a normal distribution between which 95% of it lie."""


STUDENT_95: Final = (
    (1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (6, 2.447), (7, 2.365), (8, 2.306), (9, 2.262),
    (10, 2.228), (12, 2.179), (15, 2.131), (20, 2.086), (30, 2.042), (60, 2.000), (120, 1.980),
)  # fmt: skip
"""Degrees of freedom and the standard errors on either side of a mean between which 95% of Student's t distribution
lie; between two entries the wider one holds, beyond the last one its own."""

MAD_TO_SIGMA: Final = 1.482602
"""What a median absolute deviation is to be multiplied by for a normal distribution's standard deviation."""

MEDIAN_TO_MEAN: Final = 1.253314
"""How much larger the standard error of a median is than a mean's, of a normal distribution: sqrt(pi / 2)."""


def student_95(freedom: float) -> float:
    """Of ``STUDENT_95``; below 1 degree the widest."""
    return next((value for least, value in reversed(STUDENT_95) if freedom >= least), STUDENT_95[0][1])


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
