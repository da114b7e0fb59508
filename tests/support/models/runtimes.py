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


class Mixed(nn.Module):
    """Sums and activations that a runtime does in a convolution; a convolution that is called twice, before different
    layers; a dropout before a product; an encoder, which PyTorch has an operator of its own for."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.leaky = nn.Conv2d(3, 16, 3, padding=1), nn.LeakyReLU(0.1)
        self.twice, self.clip = nn.Conv2d(16, 16, 3, padding=1), nn.ReLU6()
        self.last, self.relu, self.pool = nn.Conv2d(16, 16, 1), nn.ReLU(), nn.MaxPool2d(2)
        self.drop, self.linear, self.gelu = nn.Dropout(0.5), nn.Linear(24, 64), nn.GELU()
        self.encoder = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The output."""
        x = self.twice(self.clip(self.twice(self.leaky(self.first(x)))))
        x = self.pool(self.relu(self.last(x) + x))
        found: torch.Tensor = self.encoder(self.gelu(self.linear(self.drop(x))).flatten(1, 2))
        return found


def mixed() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The factory."""
    torch.manual_seed(0)
    return Mixed().eval(), (torch.rand(1, 3, 48, 48),)
