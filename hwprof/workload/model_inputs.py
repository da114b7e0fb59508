"""What a user's model is called with: the factory's examples, or inputs drawn from the seed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from hwprof.workload.spec import FLOATS, INTEGERS, InputSpec

Inputs = tuple[tuple[Any, ...], Mapping[str, Any]]
"""Arguments by position and by name."""


def examples(module: nn.Module, given: Sequence[Any]) -> Inputs:
    """What a factory gives behind its model: ``(arguments)``, ``(keywords)`` or ``(arguments, keywords)``. Arguments
    are a tuple or list of them, or the only one; a dictionary alone is of keywords where ``forward`` takes them by
    these names, else it is the only argument."""
    if len(given) == 2:
        return _arguments(given[0]), dict(given[1])
    (only,) = given
    if isinstance(only, Mapping) and _takes(module, only):
        return (), dict(only)
    return _arguments(only), {}


def _arguments(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _takes(module: nn.Module, keywords: Mapping[Any, Any]) -> bool:
    """Whether ``forward`` could be called with these keywords alone."""
    if not all(isinstance(name, str) for name in keywords):
        return False
    try:
        inspect.signature(module.forward).bind(**keywords)
    except TypeError:
        return False
    except ValueError:  # it has no signature that Python knows
        return True
    return True


def drawn(specs: Sequence[InputSpec], seed: int) -> Inputs:
    """Random inputs; the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    arguments, keywords = [], {}
    for spec in specs:
        tensor = _draw(spec, generator)
        if spec.name is None:
            arguments.append(tensor)
        else:
            keywords[spec.name] = tensor
    return tuple(arguments), keywords


def _draw(spec: InputSpec, generator: torch.Generator) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if spec.dtype in INTEGERS:
        least, most = map(int, spec.range or (0, 1))
        return torch.randint(least, most + 1, spec.shape, generator=generator).to(dtype)
    if spec.range is None:
        return torch.randn(spec.shape, generator=generator).to(dtype)
    low, high = spec.range
    drawn = torch.rand(spec.shape, generator=generator)
    if max(abs(low), abs(high), high - low) > FLOATS["float32"]:
        drawn = drawn.double()
    return (low + (high - low) * drawn).to(dtype)


def notes(specs: Sequence[InputSpec]) -> list[str]:
    """What to know of inputs that were drawn: numbers that look like tokens are no vocabulary."""
    narrow = [spec.name or f"input {index}" for index, spec in enumerate(specs) if _is_a_guess(spec)]
    return [f"{name}: 0s and 1s; for others give a range, --input NAME:SHAPE:int64:0..30000" for name in narrow]


def _is_a_guess(spec: InputSpec) -> bool:
    return spec.dtype in INTEGERS and spec.dtype != "bool" and spec.range is None
