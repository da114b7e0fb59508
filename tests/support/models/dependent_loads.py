"""Layers that read memory at random, each load with or without the one before:
``tests.support.models.dependent_loads:factory``."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor, nn

from hwprof.c_compiler import compiled
from hwprof.hardware.machine import caches

CHAIN = 4_000_000
"""Lines of 64 bytes: 256 MB. A larger circle finds fewer of its pages' entries at hand than the peak's does."""

LINES = max([CHAIN, *(2 * one.size_bytes // 64 for one in caches())])
"""Of the input, which is made after the chain: twice what the last cache holds (some hold 480 MB)."""

STEPS = 150_000

SOURCE = b"""
#include <stdint.h>
__attribute__((noinline)) int64_t chase(const int64_t *next, int64_t line, int64_t steps) {
    for (int64_t n = 0; n < steps; n++)
        line = next[8 * line];
    return line;
}
"""


class Chased(nn.Module):
    """Each line says which one is next: a load needs the one before. Every call goes on where the last one ended."""

    def __init__(self) -> None:
        super().__init__()
        order = torch.randperm(CHAIN, generator=torch.Generator().manual_seed(0))
        self.next = torch.zeros(CHAIN, 8, dtype=torch.int64)
        self.next[order, 0] = order.roll(-1)
        self.line = 0
        self.chase = ctypes.CDLL(str(compiled("tests-chase", SOURCE))).chase
        self.chase.restype, self.chase.argtypes = ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]

    def forward(self, values: Tensor) -> Tensor:
        self.line = self.chase(self.next.data_ptr(), self.line, STEPS)
        return values


class Gathered(nn.Module):
    """Rows of 64 bytes at random: the loads need nothing of one another. Each call takes others, none of which
    ``Streamed`` reads: caches of hundreds of megabytes hold what was read the call before."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        rows = torch.randperm(LINES * 3 // 8, generator=generator) + LINES // 8
        self.places = rows[: len(rows) // STEPS * STEPS].view(-1, STEPS) * 16
        self.call = 0
        self.out = torch.zeros(STEPS)

    def forward(self, values: Tensor) -> Tensor:
        torch.take(values, self.places[self.call % len(self.places)], out=self.out)
        self.call += 1
        return values


class Products(nn.Module):
    """Of matrices that caches hold."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.rows = nn.Linear(768, 768, bias=False), torch.rand(768, 768)

    def forward(self, values: Tensor) -> Tensor:
        self.inner(self.rows)
        return values


class Streamed(nn.Module):
    """A sum of long arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.out = torch.zeros(LINES * 2)

    def forward(self, values: Tensor) -> Tensor:
        torch.add(values[: LINES * 2], values[LINES * 8 : LINES * 10], out=self.out)
        return values


class Known(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.chased, self.gathered, self.products, self.streamed = Chased(), Gathered(), Products(), Streamed()

    def forward(self, values: Tensor) -> Tensor:
        return self.streamed(self.products(self.gathered(self.chased(values))))  # type: ignore[no-any-return]


def factory() -> tuple[nn.Module, Tensor]:
    return Known(), torch.rand(LINES * 16)
