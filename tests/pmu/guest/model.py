"""The model that is measured in the guest: apart from the job, whose process needs no torch."""

from __future__ import annotations

import torch


def small() -> torch.nn.Module:
    """A few layers, each large enough for two threads."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 16, 3, padding=1),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 10, 1),
    )
