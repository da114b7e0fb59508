"""What other programs than PyTorch are to run: several inputs, nested outputs, layers that they do in one; and what
cannot be exported."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = x + self.act(self.conv(x))
        return added


class Several(nn.Module):
    """A batch norm behind its convolution, branches, and one layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(Block(), Block())
        self.words, self.head = nn.Embedding(10, 8), nn.Linear(8, 4)

    def forward(self, image: torch.Tensor, words: torch.Tensor, *, scale: float = 1.0) -> dict[str, Any]:
        x = self.blocks(self.bn(self.stem(image)))
        pooled = scale * (x.mean((2, 3)) + self.words(words).mean(1))
        return {"logits": self.head(pooled), "maps": [x, (pooled, 3)], "none": None}


class Deciding(nn.Linear):
    """Its values decide what it computes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if bool(x.sum() > 0) else x


def several() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The factory."""
    torch.manual_seed(0)
    return Several().eval(), (torch.rand(2, 3, 96, 96), torch.randint(0, 10, (2, 5)))


def deciding() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The factory of a model that cannot be exported."""
    return nn.Sequential(Deciding(4, 4)).eval(), (torch.rand(2, 4),)
