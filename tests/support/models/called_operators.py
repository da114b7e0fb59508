"""Layers, and code between them, that do nothing but call small operators, or run Python:
``tests.support.models.called_operators:factory``."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.support.models.budgets import TINY, Python, Tiny


class Called(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.python = Tiny(), Tiny(), Python()

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for _ in range(TINY):
            x = x * 1.0
        return self.python(self.second(x))  # type: ignore[no-any-return]


def factory() -> tuple[nn.Module, Tensor]:
    return Called(), torch.rand(8)
