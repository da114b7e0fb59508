"""Models whose iterations are short, or whose threads are."""

from __future__ import annotations

import hashlib
import threading

import torch
from torch import nn

Made = tuple[nn.Module, torch.Tensor]

TASKS = 4
"""Threads of each forward of ``in_turn``."""


def linears() -> Made:
    """About a millisecond of processor time."""
    torch.manual_seed(0)
    hidden = nn.Sequential(nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU())
    return nn.Sequential(hidden, nn.Linear(384, 10)), torch.randn(128, 384)


class InTurn(nn.Module):
    """One layer, whose work is done by threads that it starts one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(TASKS):
            task = threading.Thread(target=_work)
            task.start()
            task.join()
        return x


def in_turn() -> Made:
    """Each thread works for some 10 ms, without the interpreter."""
    return nn.Sequential(InTurn()), torch.zeros(1)


class CallsElsewhere(nn.Module):
    """Waits while a thread that it starts calls a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.helped = nn.Linear(512, 512), nn.Linear(512, 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: list[torch.Tensor] = []
        first = self.first(x)

        def work() -> None:
            with torch.inference_mode():
                found.append(self.helped(first))

        helper = threading.Thread(target=work)
        helper.start()
        helper.join()
        return found[0]


def calls_elsewhere() -> Made:
    """Two layers of some 2 ms; a new thread calls the second one."""
    return CallsElsewhere(), torch.randn(256, 512)


def _work() -> None:
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 80_000)
