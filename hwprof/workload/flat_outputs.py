"""A model whose outputs are a flat tuple of tensors, as exporters want it, and the way back to its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree


class FlatOutputs(nn.Module):
    """Calls the model, whose tensors come out one after the other; ``as_its_own`` puts them back into what the model
    gave at its last call, with whatever else there was."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._leaves: list[Any] = []
        self._spec: Any = None

    def forward(self, *arguments: Any) -> tuple[torch.Tensor, ...]:
        """The tensors in what the model gives."""
        leaves, self._spec = pytree.tree_flatten(self.model(*arguments))
        self._leaves = [None if isinstance(one, torch.Tensor) else one for one in leaves]
        self._places = [place for place, one in enumerate(leaves) if isinstance(one, torch.Tensor)]
        return tuple(leaves[place] for place in self._places)

    def as_its_own(self, tensors: Sequence[torch.Tensor]) -> Any:
        """In the structure of the model's own outputs."""
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        return pytree.tree_unflatten(leaves, self._spec)
