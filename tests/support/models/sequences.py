"""Models of sequences, as large as people have them: an encoder like BERT's base, and an LSTM."""

from __future__ import annotations

import torch
from torch import nn

VOCABULARY = 30_522
WORDS = 128


class Encoder(nn.Module):
    """BERT's base: 12 layers of 768, 12 heads."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.pooler = nn.Linear(768, 768)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Words (B, N) to (B, 768)."""
        found: torch.Tensor = torch.tanh(self.pooler(self.layers(self.embedding(words))[:, 0]))
        return found


def encoder() -> tuple[nn.Module, torch.Tensor]:
    """With a sentence."""
    return Encoder(), torch.randint(0, VOCABULARY, (1, WORDS))


class Speech(nn.Module):
    """Four bidirectional LSTMs of 512 over frames of 80 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(80, 512, 4, batch_first=True, bidirectional=True)
        self.head = nn.Linear(1024, 64)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Frames (B, N, 80) to (B, N, 64)."""
        found: torch.Tensor = self.head(self.lstm(frames)[0])
        return found


def lstm() -> tuple[nn.Module, torch.Tensor]:
    """With two seconds of speech."""
    return Speech(), torch.randn(1, 200, 80)
