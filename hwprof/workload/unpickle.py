"""Reads pickled models whose classes are not importable, and runs nothing that a file names.

Has the names that ``torch.load`` asks of a ``pickle_module``. Only the handful of functions that rebuild tensors are
real; every other class or function becomes a ``Standin`` that keeps what was stored and does nothing.
"""

from __future__ import annotations

import collections
import pickle
from typing import IO, Any, TypeVar

import torch

_ALLOWED = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,  # as protocol 2 names it
    ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
    ("torch._utils", "_rebuild_parameter"): torch._utils._rebuild_parameter,
    ("torch", "Size"): torch.Size,
    ("torch", "device"): torch.device,
}

_DEEPEST = 200

Member = TypeVar("Member")


class Standin:
    """In the place of an object of any class: its attributes, and nothing it could do."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Standin:
        """Takes any arguments, as the class would have."""
        return super().__new__(cls)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Keeps none of them."""

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Of stored dictionaries' subclasses: not needed for weights."""

    def append(self, value: Any) -> None:
        """Of stored lists' subclasses: not needed for weights."""

    def extend(self, values: Any) -> None:
        """Of stored lists' subclasses: not needed for weights."""


class Unpickler(pickle.Unpickler):
    """Finds only what is allowed; a stand-in class for anything else."""

    def find_class(self, module: str, name: str) -> Any:
        """The allowed object, or a new stand-in class of that name."""
        allowed = _ALLOWED.get((module, name))
        if allowed is not None:
            return allowed
        if module == "torch" and name.endswith("Storage"):  # the storage types of the old file format
            return getattr(torch, name)
        return type(name.rpartition(".")[2], (Standin,), {"__module__": f"{__name__}.{module}"})


UnpicklingError = pickle.UnpicklingError


def load(file: IO[bytes], **options: Any) -> Any:
    """As ``pickle.load``, restricted."""
    return Unpickler(file, **options).load()


def state_of(module: Standin, prefix: str = "", depth: int = 0) -> dict[str, torch.Tensor]:
    """The state dict that the module would have had: parameters and persistent buffers by dotted name."""
    if depth > _DEEPEST:
        return {}
    passing = module.__dict__.get("_non_persistent_buffers_set") or set()
    state = {}
    for kind, left_out in (("_parameters", set()), ("_buffers", passing)):
        for name, value in _members(module, kind, torch.Tensor):
            if name not in left_out:
                state[f"{prefix}{name}"] = value.detach()
    for name, child in _members(module, "_modules", Standin):
        state.update(state_of(child, f"{prefix}{name}.", depth + 1))
    return state


def _members(module: Standin, attribute: str, kind: type[Member]) -> list[tuple[str, Member]]:
    """The entries of one of a module's dictionaries that are what they should be."""
    members = module.__dict__.get(attribute)
    if not isinstance(members, dict):
        return []
    return [(str(name), member) for name, member in members.items() if isinstance(member, kind)]
