"""Models whose layers oneDNN treats differently: ``tests.support.models.onednn:mixed``, and the tests' own."""

from __future__ import annotations

import torch
from torch import nn


class Mixed(nn.Module):
    """A convolution with a direct kernel, one in groups with odd channel numbers, a matrix product, a recurrent net."""

    def __init__(self) -> None:
        super().__init__()
        self.direct = nn.Conv2d(3, 16, 3)
        self.grouped = nn.Conv2d(16, 6, 3, groups=2, dilation=2)
        self.product = nn.Linear(26, 64)
        self.recurrent = nn.LSTM(64, 32, batch_first=True)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        rows = self.product(self.grouped(self.direct(image))).flatten(1, 2)
        result: torch.Tensor = self.recurrent(rows)[0]
        return result


def mixed() -> tuple[nn.Module, torch.Tensor]:
    """The model and an example."""
    return Mixed(), torch.rand(2, 3, 32, 32)
