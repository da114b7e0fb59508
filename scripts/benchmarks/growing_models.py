"""A model of as many layers as the environment says, for ``growth``."""

from __future__ import annotations

import os

import torch

LAYERS = "GROWING_MODELS_LAYERS"


def deep() -> tuple[torch.nn.Module, torch.Tensor]:
    """Linear, ReLU of 64 features, in turn; with its input."""
    layers = int(os.environ[LAYERS])
    parts = [torch.nn.ReLU() if number % 2 else torch.nn.Linear(64, 64) for number in range(layers)]
    return torch.nn.Sequential(*parts), torch.rand(1, 64)
