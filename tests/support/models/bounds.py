"""Layers whose bound is known: ``tests.support.models.bounds:factory``."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

LONG = 32_000_000
"""Elements of each of three arrays: 128 MB, more than caches hold."""


class Added(nn.Module):
    """A sum of two long arrays, into a third that is there."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Parameter(torch.rand(LONG))
        self.out = torch.zeros(LONG)

    def forward(self, values: Tensor) -> Tensor:
        return torch.add(values, self.other, out=self.out)


class Sleeping(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        time.sleep(0.03)
        return values


class Tiny(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        small = values[:8]
        for _ in range(1500):
            small = small * 1.0
        return values


class Known(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.products = nn.Linear(1536, 1536, bias=False)
        self.added, self.sleeping, self.tiny = Added(), Sleeping(), Tiny()
        self.rows = torch.rand(1536, 1536)

    def forward(self, values: Tensor) -> Tensor:
        self.products(self.rows)
        return self.tiny(self.sleeping(self.added(values)))  # type: ignore[no-any-return]


def factory() -> tuple[nn.Module, Tensor]:
    return Known(), torch.rand(LONG)
