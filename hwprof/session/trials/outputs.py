"""How far what a model gives with a remedy is from what it gives without."""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hwprof.run.trials import Difference

if TYPE_CHECKING:
    import numpy as np

UNEQUAL: Final = float("inf")
"""No measure of how far."""


def difference(with_remedy: Path, without: Path) -> Difference | None:
    """Of the tensors in two files (npz), in their order; None where one of them cannot be read."""
    import numpy as np

    largest, compared, unequal, others = 0.0, 0, 0, 0
    try:
        for one, other in itertools.zip_longest(_arrays(with_remedy), _arrays(without)):
            found = _largest(one, other) if one is not None and other is not None else UNEQUAL
            if found is None:
                others += 1
            elif found == UNEQUAL:
                unequal += 1
            else:
                largest, compared = max(largest, found), compared + 1
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, np.exceptions.DTypePromotionError):
        return None
    return Difference(largest=largest, tensors=compared, unequal=unequal, others=others)


def _arrays(file: Path) -> Iterator[np.ndarray[Any, Any]]:
    import numpy as np

    with np.load(file, allow_pickle=False) as kept:
        for name in kept.files:
            yield kept[name]


def _largest(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float | None:
    """The largest difference over the largest magnitude without; ``UNEQUAL`` where that says nothing: another shape or
    type, not a number or infinite in other places, something where there was 0. None: no numbers."""
    import numpy as np

    if one.dtype.kind not in "fiub" and other.dtype.kind not in "fiub":
        return None
    if one.shape != other.shape or one.dtype != other.dtype:
        return UNEQUAL
    left, right = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True) or not np.isfinite(left[finite]).all():
        return UNEQUAL
    if not finite.any():
        return 0.0
    apart, magnitude = float(np.abs(left - right)[finite].max()), float(np.abs(right[finite]).max())
    return 0.0 if not apart else apart / magnitude if magnitude else UNEQUAL
