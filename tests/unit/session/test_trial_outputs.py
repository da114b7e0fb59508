"""How far what a model gives with a remedy is from what it gives without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwprof.session.trials.outputs import difference

NAN, INF = float("nan"), float("inf")


def between(folder: Path, one: list[Any], other: list[Any]) -> tuple[float, int, int, int]:
    files = [folder / name for name in ("with.npz", "without.npz")]
    for file, arrays in zip(files, (one, other), strict=True):
        np.savez(file, *(np.asarray(array) for array in arrays))
    found = difference(*files)
    assert found is not None
    return found.largest, found.tensors, found.unequal, found.others


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]], (0.0, 1, 0, 0)),
        ([[1.0, 2.5]], [[1.0, 2.0]], (0.25, 1, 0, 0)),
        ([[1.0, NAN]], [[1.0, 2.0]], (0.0, 0, 1, 0)),
        ([[1.0, NAN]], [[1.0, NAN]], (0.0, 1, 0, 0)),
        ([[1.5, -INF]], [[1.0, -INF]], (0.5, 1, 0, 0)),
        ([[1.0, INF]], [[1.0, -INF]], (0.0, 0, 1, 0)),
        ([[0.0, 1.0]], [[0.0, 0.0]], (0.0, 0, 1, 0)),
        ([[0.0, 0.0]], [[0.0, 0.0]], (0.0, 1, 0, 0)),
        ([[1.0]], [[1.0], [2.0]], (0.0, 1, 1, 0)),
        ([[1.0, 2.0, 3.0]], [[1.0, 2.0]], (0.0, 0, 1, 0)),
        ([[1, 2]], [[1, 3]], (1 / 3, 1, 0, 0)),
        ([[1, 2]], [[1.0, 2.0]], (0.0, 0, 1, 0)),
        ([["a"]], [["a"]], (0.0, 0, 0, 1)),
        ([[NAN]], [[NAN]], (0.0, 0, 0, 1)),
        ([[]], [[]], (0.0, 1, 0, 0)),
    ],
)
def test_they_are_told_apart(
    one: list[Any], other: list[Any], found: tuple[float, int, int, int], tmp_path: Path
) -> None:
    assert between(tmp_path, one, other) == pytest.approx(found)


def test_what_cannot_be_read_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "broken.npz").write_bytes(b"PK")
    np.savez(tmp_path / "whole.npz", np.zeros(1))
    assert difference(tmp_path / "broken.npz", tmp_path / "whole.npz") is None
    assert difference(tmp_path / "none.npz", tmp_path / "whole.npz") is None
