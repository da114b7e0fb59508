"""How far what a model gives with a remedy is from what it gives without."""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwprof.run.trials import Difference

if TYPE_CHECKING:
    import numpy as np


def difference(with_remedy: Path, without: Path) -> Difference | None:
    """Of the tensors in two files (npz), in their order; None where one of them cannot be read."""
    import numpy as np

    largest, compared, others = 0.0, 0, 0
    try:
        for one, other in itertools.zip_longest(_arrays(with_remedy), _arrays(without)):
            found = _largest(one, other) if one is not None and other is not None else None
            if found is None:
                others += 1
            else:
                largest, compared = max(largest, found), compared + 1
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, np.exceptions.DTypePromotionError):
        return None
    return Difference(largest=largest, tensors=compared, others=others)


def _arrays(file: Path) -> Iterator[np.ndarray[Any, Any]]:
    import numpy as np

    with np.load(file, allow_pickle=False) as kept:
        for name in kept.files:
            yield kept[name]


def _largest(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float | None:
    """The largest difference over the largest magnitude without; None where there is none to be told."""
    import numpy as np

    if one.shape != other.shape or one.dtype != other.dtype or not one.size:
        return None
    if one.dtype.kind not in "fiub":
        return None
    left, right = one.astype(np.float64), other.astype(np.float64)
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    magnitude = float(np.abs(right).max())
    apart = float(np.abs(left - right).max())
    return apart / magnitude if magnitude else (0.0 if not apart else None)
