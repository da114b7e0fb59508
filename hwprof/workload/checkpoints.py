"""Weights from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn


def load_weights(model: nn.Module, path: Path, fuse: Callable[[], None] | None = None) -> None:
    """placeholder until the loader is in."""
    raise NotImplementedError
