"""A model with three layers that waste the processor in three ways: ``tests.support.models.wasteful:factory``."""

from __future__ import annotations

import torch
from torch import nn

STREAMED = 12_000_000
"""Elements of each of three arrays: 48 MB, more than the 32 MB of the last cache in the test."""

SMALL = 30_000
"""Elements: fewer than PyTorch shares out to several threads."""

ROUNDS = 800
SCALAR = 200_000


class Unvectorised(nn.Module):
    """The incomplete gamma function: PyTorch has it element by element, on all threads, in the caches."""

    def __init__(self) -> None:
        super().__init__()
        self.order = nn.Parameter(torch.rand(SCALAR) * 5 + 1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.special.gammainc(self.order, values[:SCALAR])
        return result


class Streaming(nn.Module):
    """A sum of two large arrays: vectorised, on all threads, every element from memory."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Parameter(torch.rand(STREAMED))
        self.result = torch.zeros(STREAMED)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.add(values, self.other, out=self.result)
        return result


class SingleThreaded(nn.Module):
    """Many sigmoids of a small array: vectorised, in the caches, on one thread."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        small = values[:SMALL].clone()
        for _ in range(ROUNDS):
            torch.sigmoid(small, out=small)
        return small


class ToldApart(nn.Module):
    """The three, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.unvectorised, self.streaming, self.single_threaded = Unvectorised(), Streaming(), SingleThreaded()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        whole = self.unvectorised(values).sum() + self.streaming(values)[0]
        result: torch.Tensor = whole + self.single_threaded(values).sum()
        return result


def factory() -> tuple[nn.Module, torch.Tensor]:
    """The model and its input."""
    return ToldApart(), torch.rand(STREAMED)
