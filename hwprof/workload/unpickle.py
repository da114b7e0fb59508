"""Reads pickled models whose classes are not importable, and runs nothing that a file names.

Has the names that ``torch.load`` asks of a ``pickle_module``. Only the handful of functions that rebuild tensors are
real, and the file gets none of them in hand: what it is given can be called and cannot be changed. Every other class or
function becomes a ``Placeholder`` that keeps what was stored and does nothing.
"""

from __future__ import annotations

import collections
import pickle
from collections.abc import Callable
from typing import IO, Any, Final, TypeVar

import torch

from hwprof.workload.pickle_scan import scan


class Allowed:
    """A function that a file may call. It has no attribute that can be set: BUILD would set those of the function
    itself, which belongs to the process."""

    __slots__ = ("__call",)
    __call: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_Allowed__call", function)

    def __call__(self, *arguments: Any) -> Any:
        """As the function."""
        return self.__call(*arguments)

    def __setattr__(self, name: str, value: Any) -> None:
        raise pickle.UnpicklingError(f"the file sets {name!r} of a function")

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("the file changes a function")


_FUNCTIONS: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,  # as protocol 2 names it
    ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
    ("torch._utils", "_rebuild_parameter"): torch._utils._rebuild_parameter,
    ("torch", "Size"): torch.Size,
    ("torch", "device"): torch.device,
}
_ALLOWED: Final = {name: Allowed(function) for name, function in _FUNCTIONS.items()}

_DEEPEST: Final = 200
_MOST_MODULES: Final = 100_000
_MOST_CHARACTERS: Final = 1 << 26
"""Of all modules' paths together; a thousand of each of 60,000."""

Member = TypeVar("Member")


class _Sealed(type):
    """Of classes that are made for a file and that it cannot change."""

    def __setattr__(cls, name: str, value: Any) -> None:
        raise pickle.UnpicklingError(f"the file sets {name!r} of a class")


class Placeholder(metaclass=_Sealed):
    """In the place of an object of any class: its attributes, and nothing it could do."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Placeholder:
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
    """Finds only what is allowed; a placeholder class for anything else."""

    def __init__(self, file: IO[bytes], **options: Any) -> None:
        super().__init__(file, **options)
        self._file = file

    def load(self) -> Any:
        """Raises ``UnpicklingError`` before anything is built for what would take more than the file has."""
        scan(self._file)
        return super().load()

    def find_class(self, module: str, name: str) -> Any:
        """What may be called, or a new placeholder class of that name. (torch itself answers for storage types.)"""
        allowed = _ALLOWED.get((module, name))
        if allowed is not None:
            return allowed
        return _Sealed(name.rpartition(".")[2], (Placeholder,), {"__module__": f"{__name__}.{module}"})

    def __setattr__(self, name: str, value: Any) -> None:
        # torch puts its own function here, and would compare a module's class with the source that the file gives
        super().__setattr__(name, _without_sources(value) if name == "persistent_load" else value)


def _without_sources(load: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of what lies outside of the pickle, storages only: of a module's class and source the class is all there is."""

    def persistent_load(saved: Any) -> Any:
        kind = saved[0] if isinstance(saved, tuple) and saved else None
        if kind in ("storage", b"storage"):
            return load(saved)
        if kind in ("module", b"module") and len(saved) > 1 and isinstance(saved[1], _Sealed):
            return saved[1]
        raise pickle.UnpicklingError("the file refers to something that is neither a tensor's data nor a class")

    return persistent_load


UnpicklingError = pickle.UnpicklingError


def load(file: IO[bytes], **options: Any) -> Any:
    """As ``pickle.load``, restricted."""
    return Unpickler(file, **options).load()


def state_of(module: Placeholder) -> dict[str, torch.Tensor]:
    """The state dict that the module would have had: parameters and persistent buffers by dotted name. Raises
    ``UnpicklingError`` for modules that hold one another without end."""
    state: dict[str, torch.Tensor] = {}
    waiting, seen, characters = [(module, "", 0)], 0, 0
    while waiting:
        one, prefix, depth = waiting.pop()
        seen += 1
        if depth > _DEEPEST or seen > _MOST_MODULES:
            raise UnpicklingError("its modules hold one another without end")
        passing = one.__dict__.get("_non_persistent_buffers_set") or set()
        for kind, left_out in (("_parameters", set()), ("_buffers", passing)):
            for name, value in _members(one, kind, torch.Tensor):
                if name not in left_out:
                    state[f"{prefix}{name}"] = value.detach()
        children = _members(one, "_modules", Placeholder)
        characters += sum(len(prefix) + len(name) for name, _ in children)
        if characters > _MOST_CHARACTERS:
            raise UnpicklingError("the paths of its modules are longer than any")
        waiting += [(child, f"{prefix}{name}.", depth + 1) for name, child in reversed(children)]
    return state


def _members(module: Placeholder, attribute: str, kind: type[Member]) -> list[tuple[str, Member]]:
    """The entries of one of a module's dictionaries that are what they should be."""
    members = module.__dict__.get(attribute)
    if not isinstance(members, dict):
        return []
    return [(str(name), member) for name, member in members.items() if isinstance(member, kind)]
