"""What a file's tensors and a model's differ in."""

from __future__ import annotations

from typing import Final, NamedTuple

import torch

from hwprof.workload.tensors import StateDict

COUNTERS: Final = "num_batches_tracked"
"""A buffer of batch normalisation that inference does not use and old checkpoints lack."""

SHOWN: Final = 3


class Differences(NamedTuple):
    """Names of tensors."""

    missing: list[str]
    unexpected: list[str]
    misshapen: list[str]
    unlike: list[str]  # of another kind: sparse, nested, complex or without data

    def __str__(self) -> str:
        """``2 missing (model.0.conv.weight, model.0.bn.weight)``; empty where there is none."""
        kinds = ("missing", "unexpected", "of another shape", "sparse, nested, complex or without data")
        return "; ".join(
            f"{len(names)} {what} ({_some(names)})" for what, names in zip(kinds, self, strict=True) if names
        )


def differences(state: StateDict, own: StateDict) -> Differences:
    """Of a file's ``state`` from what the model wants; counters are no difference."""
    missing = [key for key in own if key not in state and not key.endswith(COUNTERS)]
    unexpected = [key for key in state if key not in own and not key.endswith(COUNTERS)]
    unlike = [key for key in own if key in state and _kind(own[key]) != _kind(state[key])]
    alike = [key for key in own if key in state and key not in unlike]  # others may have no shape to ask for
    misshapen = [key for key in alike if own[key].shape != state[key].shape]
    return Differences(missing, unexpected, misshapen, unlike)


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''}"


def _kind(value: torch.Tensor) -> tuple[object, ...]:
    """What must be the same for a value to be copied whole."""
    return value.is_nested, value.is_complex(), value.layout, value.is_meta
