"""How much slower one way of doing the same is, from interleaved rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def slower(ratios: Sequence[float]) -> str:
    """The median of times over those of the other way, as ``+1.20% ± 0.31``: the error is that of the median (1.25
    standard errors of the mean, from the quartiles)."""
    low, median, high = statistics.quantiles(ratios, n=4)
    error = 1.25 * (high - low) / 1.349 / len(ratios) ** 0.5
    return f"{(median - 1) * 100:+.2f}% ± {error * 100:.2f}"
