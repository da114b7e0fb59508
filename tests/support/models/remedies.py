"""A model whose time is known with and without remedies: it sleeps, by what its environment says."""

from __future__ import annotations

import os
import subprocess
import time

import torch
from torch import nn

WITHOUT_S = 0.040
FASTER = 0.75
"""Of the time, with ``active_wait``."""

SLOWER = 1.25
"""With ``bind_threads``."""

ADDED = 0.125
"""To each output, with ``bind_threads``; they are 1 without."""


HELPER_S = "631.25"
"""A process that it starts, and never ends."""


class Sleeper(nn.Module):
    """As long as it says."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.seconds = WITHOUT_S
        self.bound = "OMP_PROC_BIND" in os.environ
        if os.environ.get("OMP_WAIT_POLICY") == "ACTIVE":
            self.seconds *= FASTER
        if self.bound:
            self.seconds *= SLOWER
        self.helper = subprocess.Popen(["sleep", HELPER_S])
        self.dies = "MALLOC_TRIM_THRESHOLD_" in os.environ

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Ones; with ``keep_memory`` it ends its process."""
        if self.dies:
            os._exit(7)
        time.sleep(self.seconds)
        found = torch.ones_like(self.layer(x))
        return found + ADDED if self.bound else found


def factory() -> tuple[nn.Module, torch.Tensor]:
    """With its input."""
    return Sleeper(), torch.zeros(1, 4)
