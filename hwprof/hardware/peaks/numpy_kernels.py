"""STREAM's triad as numpy does it, where there is no C compiler: slower than the hardware allows, and it says so."""

from __future__ import annotations

from typing import Final

import numpy as np

from hwprof.hardware.peaks.team import Loop

BLOCK: Final = 4096
"""Elements: the product of a block stays in the first cache until it is added."""


def triad(size: int) -> Loop:
    """Over three arrays of doubles of so many bytes together."""
    count = size // 24
    a, b, c = (np.ones(count) for _ in range(3))
    scaled = np.empty(BLOCK)

    def loop(rounds: int) -> None:
        for _ in range(rounds):
            for begin in range(0, count, BLOCK):
                part = slice(begin, min(begin + BLOCK, count))
                product = np.multiply(c[part], 3.0, out=scaled[: part.stop - begin])
                np.add(b[part], product, out=a[part])

    return loop


def how() -> str:
    """``numpy 2.4.6``"""
    return f"numpy {np.__version__}"
