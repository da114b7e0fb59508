"""A model's call as runtimes know it: tensors in, tensors out, by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import nn
from torch.utils import _pytree as pytree

INNER: Final = "model"
"""What the model is called in a ``FlatCall``."""

PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))
"""Of arguments that are no tensors: those that are the same if they are equal."""

Leaves = tuple[list[Any], pytree.TreeSpec]


def flatten(arguments: Any, keywords: Any) -> Leaves:
    """What a call is given, and how it is nested."""
    return pytree.tree_flatten((arguments, dict(keywords)))


def tensors_of(leaves: Sequence[Any]) -> list[torch.Tensor]:
    """In their order."""
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def kind_of(leaves: Sequence[Any], spec: pytree.TreeSpec) -> tuple[Any, ...]:
    """The same for two calls that a runtime may do in the same way: shapes, types, and all that is no tensor."""
    return (repr(spec), *map(_kind, leaves))


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.dtype
    return (type(leaf), leaf) if isinstance(leaf, PLAIN) else id(leaf)


class FlatCall(nn.Module):
    """The model, called with tensors only, the others as they are now; it gives the tensors of what the model gives."""

    def __init__(
        self, model: nn.Module, leaves: Sequence[Any], spec: pytree.TreeSpec, given: Callable[[Structure], None]
    ) -> None:
        """``given`` is told what each call gave: the exporter puts this module's attributes back."""
        super().__init__()
        self.model = model
        self.training = model.training  # ``eval()`` would change the model
        self._leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self._spec = spec
        self._given = given

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Takes and gives tensors in the order of the leaves."""
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        arguments, keywords = pytree.tree_unflatten(leaves, self._spec)
        leaves, spec = pytree.tree_flatten(self.model(*arguments, **keywords))
        self._given(Structure(leaves, spec))
        return tuple(tensors_of(leaves))


class Structure:
    """How what a model gives is nested, and what of it is no tensor."""

    def __init__(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> None:
        self._tensors = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self._leaves = [None if tensor else leaf for leaf, tensor in zip(leaves, self._tensors, strict=True)]
        self._spec = spec

    @property
    def tensors(self) -> int:
        """How many there are."""
        return sum(self._tensors)

    def filled(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The same with other tensors, in the order of the leaves."""
        following = iter(tensors)
        leaves = [next(following) if tensor else leaf for leaf, tensor in zip(self._leaves, self._tensors, strict=True)]
        return pytree.tree_unflatten(leaves, self._spec)
