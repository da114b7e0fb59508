"""A layer of many small operators, in which a recorder of operators does about as much as the layer; and one that goes
by the clock."""

from __future__ import annotations

import time

import torch
from torch import nn

ADDITIONS = 3000
LOOP_S = 0.01


class Additions(nn.Module):
    """Each takes about a microsecond, and is three operators deep."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(ADDITIONS):
            x = x + 1
        return x


class Loop(nn.Module):
    """As many turns as fit into the time: another number in every pass."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        end_s = time.perf_counter() + LOOP_S
        while time.perf_counter() < end_s:
            pass
        return x


def factory() -> tuple[nn.Module, torch.Tensor]:
    return nn.Sequential(Additions(), Loop()), torch.zeros(4, 4)
