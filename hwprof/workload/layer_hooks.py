"""Watches a model's modules: every call becomes a span with counters at both edges.

How a recording gets into a module's way says ``module_call``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import torch

from hwprof.printable import as_text
from hwprof.run.owner_names import path_of
from hwprof.workload.module_call import Forward, ModuleCall, SwitchedCall, dynamo, is_compiled, stand_in_of

if TYPE_CHECKING:  # it looks at layers, too
    from hwprof.workload.runtimes.stand_in import StandIn

HOLDERS: Final = frozenset({"LinearPackedParams", "EmbeddingPackedParams", "PackedParameter"})
"""Types of modules that hold a quantised layer's weights, and that nobody calls."""


class LayerRecorder(Protocol):
    """Who records the calls: makes a recording function of a module's ``forward``; see the session's recorder."""

    def path_number(self, path: str) -> int:
        """A number for a layer path."""
        ...

    def timed(self, path: int, forward: Forward) -> Forward:
        """Records begin and end."""
        ...

    def counted(self, path: int, forward: Forward, *, leaf: bool) -> Forward:
        """Records begin, end and counters; the time excludes their reading."""
        ...

    def counted_alone(self, path: int, forward: Forward, *, leaf: bool) -> Forward:
        """Records begin, end and counters; the counts exclude the looks at the clock."""
        ...


@dataclass
class _Watched:
    path: str
    number: int  # the recorder's, of the path
    call: ModuleCall
    way: ModuleCall | SwitchedCall
    leaf: bool
    stood_in_for: bool
    timed: Forward
    counted: Forward | None = None  # made at its first use: the counters are known only after warm-up


class LayerHooks:
    """The watched modules of a workload: ``time_only``, ``count`` and ``rest`` choose what the next calls record.

    ``counts_alone`` (to be set before the first ``count``): other iterations take the times, so that counting need not
    look at the clock between the readings.
    """

    def __init__(self, modules: Mapping[str, torch.nn.Module], recorder: LayerRecorder) -> None:
        self._modules = modules
        self._recorder = recorder
        self.stand_ins = stand_ins(modules)
        self.counts_alone = False
        self._room = room_on_the_stack()
        self._room.__enter__()
        self._watched = [
            _watch(path, module, recorder) for prefix, root in modules.items() for path, module in layers(prefix, root)
        ]

    def time_only(self) -> None:
        """Layers are timed; no counter is read at their edges."""
        self._watch_stand_ins()
        for watched in self._watched:
            watched.way.place(watched.timed)

    def count(self) -> None:
        """Modules are timed and counted; what others run is only timed: nothing tells of which layer the counts are."""
        self._watch_stand_ins()
        counted = self._recorder.counted_alone if self.counts_alone else self._recorder.counted
        for watched in self._watched:
            if watched.stood_in_for:
                watched.way.place(watched.timed)
                continue
            if watched.counted is None:
                watched.counted = counted(watched.number, watched.call.function, leaf=watched.leaf)
            watched.way.place(watched.counted)

    def rest(self) -> None:
        """Nothing is recorded, and modules are as they were; but where code is compiled, a way past it stays."""
        for stand_in in self.stand_ins.values():
            stand_in.rest()
        for watched in self._watched:
            watched.way.restore()

    @property
    def leaves(self) -> frozenset[str]:
        """The paths of the leaf layers."""
        return frozenset(watched.path for watched in self._watched if watched.leaf)

    def _watch_stand_ins(self) -> None:
        for stand_in in self.stand_ins.values():
            stand_in.watch()

    def unseen(self) -> list[str]:
        """The paths of the modules of which not all calls were recorded: the model's own code has put another module
        in their place since, or another ``forward``, or their class has a property of that name."""
        there = {module for prefix, root in self._modules.items() for _, module in layers(prefix, root)}
        return [one.path for one in self._watched if one.call.is_passed_by or one.call.module not in there]

    def halt(self, error: BaseException) -> None:
        """The next leaf layer raises ``error`` instead of beginning; one that has begun comes to its end."""

        def raise_error(*_: Any, **__: Any) -> Any:
            raise error

        for watched in self._watched:
            if watched.leaf:
                watched.way.place(raise_error)

    def remove(self) -> None:
        """The modules are as they were."""
        for watched in self._watched:
            watched.call.restore()
        self._room.__exit__(None, None, None)


@contextlib.contextmanager
def room_on_the_stack() -> Iterator[None]:
    """While it lasts Python's calls may be nested twice as deep: a watched module takes four frames instead of three,
    and a deep model that works without must work with them."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(2 * before)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def layers(prefix: str, root: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """The ``root`` and the modules below it with their dotted paths; its own is that of ``prefix``, and its type's name
    where it has none below it. What is compiled as a whole is one layer, and of what another program runs only the
    ``root`` is called."""
    if stand_in_of(root) is not None and not is_leaf(root):
        return [(path_of(prefix.removesuffix(".")), root)]
    below = [] if is_leaf(root) else list(_below(prefix, root, {root}))
    if not below:
        return [(path_of(f"{prefix}{type_name(root)}"), root)]
    return [(path_of(prefix.removesuffix(".")), root), *below]


def type_name(module: torch.nn.Module) -> str:
    """Its class as PyTorch prints it: ``DynamicQuantizedLinear`` is another one than ``Linear``, though both classes
    have the same name. A traced module, which is one layer, is none of the class that was traced."""
    if is_compiled(module):
        return type(module).__name__
    with contextlib.suppress(Exception):  # a user's module may say it
        name: Any = module._get_name()  # type: ignore[no-untyped-call]
        if isinstance(name, str) and name.isidentifier():
            return name
    return type(module).__name__


def is_leaf(module: torch.nn.Module) -> bool:
    """Whether nothing of it is called as a module: it has none in it but holders of its weights, or is compiled as a
    whole (``torch.compile``, TorchScript), so that Python does not see what is in it; looking would change what is
    executed."""
    return is_compiled(module) or all(map(_holds_weights, module.children()))


def _holds_weights(module: torch.nn.Module) -> bool:
    """A holder, or a list of nothing else."""
    children = list(module.children())
    listed = isinstance(module, torch.nn.ModuleList) and bool(children) and all(map(_holds_weights, children))
    return listed or type(module).__name__ in HOLDERS


def _below(prefix: str, module: torch.nn.Module, seen: set[torch.nn.Module]) -> Iterator[tuple[str, torch.nn.Module]]:
    """In the order of ``named_modules``, each module once."""
    for name, child in module.named_children():
        if child not in seen:
            seen.add(child)
            path = path_of(f"{prefix}{as_text(name)}")
            yield path, child
            if not is_leaf(child):
                yield from _below(f"{path}.", child, seen)


def _watch(path: str, module: torch.nn.Module, recorder: LayerRecorder) -> _Watched:
    number, call = recorder.path_number(path), ModuleCall(module)
    stood_in_for, leaf = stand_in_of(module) is not None, is_leaf(module)  # before another function is in the way
    way = SwitchedCall(call) if dynamo() is not None else call
    return _Watched(path, number, call, way, leaf, stood_in_for, recorder.timed(number, call.function))


def stand_ins(modules: Mapping[str, torch.nn.Module]) -> dict[str, StandIn]:
    """What has other programs run models, by the models' prefixes."""
    return {prefix: found for prefix, root in modules.items() if (found := stand_in_of(root)) is not None}
