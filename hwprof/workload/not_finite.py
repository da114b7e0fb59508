"""Weights that are no numbers: a training that diverged, or a damaged file, leaves a model that runs all the same."""

from __future__ import annotations

from typing import Final

import torch
from torch import nn

from hwprof.workload.tensors import without_repetition

KINDS: Final = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Types whose sums PyTorch makes."""


def told(module: nn.Module) -> str | None:
    """How many of its tensors hold NaN or infinities; None: none does."""
    held = [value.detach() for value in module.state_dict().values() if _has_numbers(value)]
    found = sum(not _is_finite(value) for value in held)
    if not found:
        return None
    return f"{found} of {len(held)} tensors of the weights hold NaN or infinities: what comes out means nothing"


def _has_numbers(value: object) -> bool:
    if not isinstance(value, torch.Tensor) or type(value) not in (torch.Tensor, nn.Parameter):
        return False  # a subclass, of quantised weights say, may refuse to be added up
    return value.dtype in KINDS and value.layout is torch.strided and not value.is_meta


def _is_finite(value: torch.Tensor) -> bool:
    """By its sum, which needs no memory; only one that is not finite, also of large numbers, is looked at closely."""
    value = without_repetition(value)
    return bool(value.sum().isfinite()) or bool(value.isfinite().all())
