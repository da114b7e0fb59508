"""What runs an exported model in the place of PyTorch, and what it tells of its operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import torch

from hwprof.errors import HwprofError, described
from hwprof.workload.runtimes.exported import Exported
from hwprof.workload.runtimes.layer_spans import LayerSpan
from hwprof.workload.runtimes.products import Products

Mark = tuple[int, int, int]
"""What a runtime's clock said, and CLOCK_MONOTONIC before and after, in ns."""


class RuntimeCall(NamedTuple):
    """One that was watched: when the runtime had been called and came back, by CLOCK_MONOTONIC; the kernel's number of
    the thread that called; and its layers' spans by the runtime's clock, if it has one, inner ones first."""

    begin_ns: int
    end_ns: int
    thread: int
    spans: Sequence[LayerSpan]


class Profile(NamedTuple):
    """What is known when all is over. Without a ``clock`` spans are CLOCK_MONOTONIC's."""

    calls: Iterable[RuntimeCall]
    clock: str | None = None  # its name
    marks: Sequence[Mark] = ()
    unit_ns: int = 0  # what its stamps are whole numbers of
    fused: Mapping[str, Sequence[str]] = MappingProxyType({})  # the layers that were done in one, by its name
    notes: Sequence[str] = ()
    products: Mapping[str, Products] = MappingProxyType({})  # of each layer that has some


class Session(Protocol):
    """A model that is ready for one kind of call."""

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Takes the call's tensors, gives the model's. Raises what the runtime raises."""
        ...


class WatchedSession(Session, Protocol):
    """One that keeps what its operators do."""

    def profile(self) -> Profile:
        """To be called once; nothing runs any more then. Raises ``HwprofError`` where nobody knows."""
        ...


class Runtime(Protocol):
    """A library. Sessions have as many threads as torch has when they are made."""

    name: str

    def session(self, model: Exported) -> Session:
        """Raises ``HwprofError`` where the library cannot do what is in the model."""
        ...

    def watched(self, model: Exported) -> WatchedSession:
        """As ``session``."""
        ...


@contextmanager
def loading(name: str) -> Iterator[None]:
    """What the library ``name`` raises becomes one line."""
    try:
        yield
    except HwprofError:
        raise
    except Exception as error:  # each library has a kind of its own, of RuntimeError or not
        raise HwprofError(f"{name} does not take the model: {described(error)}") from error


def arrays(tensors: Sequence[torch.Tensor], name: str) -> list[Any]:
    """The tensors' memory as numpy has it. Raises ``HwprofError`` for types that it does not know."""
    try:
        return [tensor.detach().contiguous().numpy() for tensor in tensors]
    except TypeError as error:
        raise HwprofError(f"{name} is given what numpy does not know: {described(error)}") from error
