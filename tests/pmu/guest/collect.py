"""Runs ``hwprof collect`` in the guest on a small model: ``python3 -m tests.pmu.guest.collect [OPTIONS]``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from tests.pmu.guest.registration import register


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


def main() -> int:
    from hwprof.cli.app import run

    results = Path(os.environ["OUT"]) / "results"
    register()
    return run(
        ["collect", "--model", "tests.pmu.guest.collect:small", "--input-shape", "1,3,32,32", "--passes", "measure",
         "--iterations", "8", "--warmup", "8", "--output", str(results), *sys.argv[1:]]
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
