"""How far what a model gives is from what it gives otherwise. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from hwprof.run.trials import Difference

Array = np.ndarray[Any, Any]


class _Apart(NamedTuple):
    """Two tensors, by the largest magnitude of the second one."""

    largest: float
    total: float
    elements: int


UNEQUAL: Final = _Apart(float("inf"), 0.0, 0)
"""No measure of how far."""


def difference(pairs: Iterable[tuple[Array | None, Array | None]]) -> Difference:
    """Of tensors one by one, and what they are held against; None where there is none. Raises ``ValueError`` and
    ``DTypePromotionError`` for arrays of numpy's that are no tensors."""
    largest, total, elements, compared, unequal, others = 0.0, 0.0, 0, 0, 0, 0
    for one, other in pairs:
        found = _apart(one, other) if one is not None and other is not None else UNEQUAL
        if found is None:
            others += 1
        elif found is UNEQUAL:
            unequal += 1
        else:
            largest, compared = max(largest, found.largest), compared + 1
            total, elements = total + found.total, elements + found.elements
    mean = total / elements if elements else None
    return Difference(largest=largest, mean=mean, tensors=compared, unequal=unequal, others=others)


def _apart(one: Array, other: Array) -> _Apart | None:
    """``UNEQUAL`` where a difference says nothing: another shape or type, not a number or infinite in other places,
    something where there was 0. None: no numbers, or none that is finite."""
    if one.dtype.kind not in "fiub" and other.dtype.kind not in "fiub":
        return None
    if one.shape != other.shape or one.dtype != other.dtype:
        return UNEQUAL
    left, right = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True) or not np.isfinite(left[finite]).all():
        return UNEQUAL
    if not finite.any():
        return None if finite.size else _Apart(0.0, 0.0, 0)
    apart, magnitude = np.abs(left[finite] - right[finite]), float(np.abs(right[finite]).max())
    if not apart.any():
        return _Apart(0.0, 0.0, apart.size)
    return _Apart(float(apart.max()) / magnitude, float(apart.sum()) / magnitude, apart.size) if magnitude else UNEQUAL
