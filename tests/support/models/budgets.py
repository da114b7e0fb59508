"""Layers of which each spends its time on one thing that a test knows: ``tests.support.models.budgets:factory``."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

PYTHON_S = 0.04
SLEEP_S = 0.04
FAULTED = 24_000_000
"""Bytes that are new at each call: more than the allocator keeps."""

SIDE = 2400
"""Of a matrix that is turned: 23 MB, in place of another."""

TINY = 900
"""Operators on eight numbers."""


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(768, 768))
        self.out = torch.empty(768, 768)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            torch.mm(self.weight, self.weight, out=self.out)
        return x


class Turned(nn.Module):
    """A copy into another order, into memory that is there."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix, self.out = torch.rand(SIDE, SIDE), torch.empty(SIDE, SIDE)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            self.out.copy_(self.matrix.t())
        return x


class Faulting(nn.Module):
    """Writes a number into each page of memory that is new. What it takes is given back outside of it: unmapping is
    another thing, and a third of the time."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(6):
            self.taken.append(torch.empty(FAULTED, dtype=torch.uint8))
            self.taken[-1][::4096].fill_(1)
        return x


class Python(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        end_s, number = time.perf_counter() + PYTHON_S, 0  # no system call
        while time.perf_counter() < end_s:
            number += sum(range(100))
        return x


class Sleeping(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        time.sleep(SLEEP_S)
        return x


class Tiny(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(TINY):
            x = x * 1.0
        return x


MOST = {
    "products": "compute",
    "turned": "layout",
    "faulting": "page_faults",
    "python": "dispatch",
    "sleeping": "blocked",
    "tiny": "dispatch",
}
"""What each layer's time is, for the most."""


class Known(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.products, self.turned, self.faulting = Products(), Turned(), Faulting()
        self.python, self.sleeping, self.tiny = Python(), Sleeping(), Tiny()

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = layer(x)
        self.faulting.taken.clear()
        return x


def factory() -> tuple[nn.Module, Tensor]:
    return Known(), torch.rand(8)
