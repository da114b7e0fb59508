"""Layers that allocate, keep, free and touch what a test knows."""

from __future__ import annotations

import mmap
from collections import deque

import torch
from torch import Tensor, nn

PASSING_BYTES = 3_000_000
KEPT_BYTES = 500_000
PAGES = 700


class Passing(nn.Module):
    """Two tensors, one after the other: twice as much in all, and at most one at a time."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            torch.empty(PASSING_BYTES, dtype=torch.uint8)
        return x


class Keeping(nn.Module):
    """A tensor that lives until the third call after."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: deque[Tensor] = deque(maxlen=3)

    def forward(self, x: Tensor) -> Tensor:
        self.kept.append(torch.empty(KEPT_BYTES, dtype=torch.uint8))
        return x


class Touching(nn.Module):
    """Pages that the process did not have, and has no more when it returns; none of them torch's."""

    def forward(self, x: Tensor) -> Tensor:
        with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as pages:
            for page in range(PAGES):
                pages[page * mmap.PAGESIZE] = 1
        return x


class Block(nn.Module):
    """Own code that keeps what its layer does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.passing, self.keeping, self.touching = Passing(), Keeping(), Touching()
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        x = self.touching(self.keeping(self.passing(x)))
        self.last = torch.empty(KEPT_BYTES, dtype=torch.uint8)
        return x


def known() -> nn.Module:
    return nn.Sequential(Block())
