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

    from hwprof.workload import output_differences

    try:
        return output_differences.difference(itertools.zip_longest(_arrays(with_remedy), _arrays(without)))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, np.exceptions.DTypePromotionError):
        return None


def _arrays(file: Path) -> Iterator[np.ndarray[Any, Any]]:
    import numpy as np

    with np.load(file, allow_pickle=False) as kept:
        for name in kept.files:
            yield kept[name]
