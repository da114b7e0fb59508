"""The text of a model whose every forward does something first."""

from __future__ import annotations

from typing import Final

ACTING: Final = """
import torch
class Does(torch.nn.Module):
    def __init__(self, act):
        super().__init__()
        self.inner, self.act, self.calls = torch.nn.Linear(3, 2), act, 0
    def forward(self, x):
        self.calls += 1
        self.act(self.calls)
        return self.inner(x)
"""
"""``Does(act)``: calls ``act`` with the number of the forward."""
