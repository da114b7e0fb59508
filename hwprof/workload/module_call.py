"""The way that a module's calls take, and who stands in it for a while to record them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any, Final

import torch

Forward = Callable[..., Any]

FORWARD: Final = "forward"
COMPILED: Final = "_compiled_call_impl"
"""What ``module.compile()`` puts in the way of ``module(x)``; ``forward`` is called in it by compiled code only."""

WHOLE: Final = "_hwprof_as_a_whole"
SEEN: Final = "_hwprof_seen_inside"


def dynamo() -> Any:
    """``torch._dynamo``'s part that compiles; None where nobody has loaded it: who compiles has, and it is slow."""
    return sys.modules.get("torch._dynamo.eval_frame")


def as_a_whole(forward: Forward) -> Forward:
    """Marks what is put in the place of a module's ``forward``: Python does not see what is in it any more."""
    setattr(forward, WHOLE, True)
    return forward


def seen_inside(forward: Forward, stand_in: object) -> Forward:
    """As ``as_a_whole``, where ``stand_in`` tells of the layers in it; see ``runtimes.stand_in``."""
    setattr(forward, SEEN, stand_in)
    return forward


def stand_in_of(module: torch.nn.Module) -> Any:
    """What ``seen_inside`` was given; None of other modules."""
    return getattr(module.__dict__.get(FORWARD), SEEN, None)


def is_compiled(module: torch.nn.Module) -> bool:
    """Whether it is compiled as a whole, so that Python does not see what is in it: TorchScript, ``torch.compile`` of
    it, of its ``forward``, or in place, or what ``as_a_whole`` has marked."""
    if isinstance(module, torch.jit.ScriptModule) or hasattr(module.__dict__.get(FORWARD), WHOLE):
        return True
    loaded = dynamo()
    if loaded is None:
        return False
    return _is_compiled_in_place(module) or isinstance(module, loaded.OptimizedModule) or _is_compiled_function(module)


def has_compiled() -> bool:
    """Whether Dynamo has compiled any code in this process."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return bool(counters.get("frames", {}).get("ok"))


def _is_compiled_in_place(module: torch.nn.Module) -> bool:
    """Of torch's own classes (``Sequential``) this compiles nothing, in silence: Dynamo passes their code over."""
    return module.__dict__.get(COMPILED) is not None and not type(module).__module__.startswith("torch.nn.")


def _is_compiled_function(module: torch.nn.Module) -> bool:
    found = module.__dict__.get(FORWARD, getattr(type(module), FORWARD, None))
    return isinstance(found, (FunctionType, MethodType)) and hasattr(found, "_torchdynamo_orig_callable")


class ModuleCall:
    """A module's ``forward``, or what compiling it in place has put before it, in the instance: replacing it there
    costs a tenth of what forward hooks cost, and also sees callers that use ``module.forward(x)``.

    ``function`` is what a recording is to call: a method's, with the module as its first argument.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self._name = COMPILED if module.__dict__.get(COMPILED) is not None else FORWARD
        self._own = module.__dict__.get(self._name)  # fused modules have one
        self._original: Forward = getattr(module, self._name)
        method = isinstance(self._original, MethodType) and self._original.__self__ is module
        self.function: Forward = self._original.__func__ if method else self._original
        self._is_method = method
        self._placed: dict[Forward, Forward] = {}
        self._there: Forward | None = self._own  # what hwprof has put there last
        self.left_alone = False  # the model's own code has put something else there, or taken it away

    def given(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Those of a call of ``function`` without the module."""
        return arguments[1:] if self._is_method else arguments

    def place(self, recording: Forward) -> None:
        """From now on calls take the ``recording``, unless the model's own code has put something else there meanwhile.

        It looks like a method of the module where the original is one: a copy of the module calls itself, not the one
        that was copied, and whoever asks for its signature gets it.
        """
        if recording not in self._placed:
            if isinstance(self.function, FunctionType):
                functools.update_wrapper(recording, self.function, updated=())
            self._placed[recording] = MethodType(recording, self.module) if self._is_method else recording
        if self._has_way():
            self._there = self.module.__dict__[self._name] = self._placed[recording]

    def restore(self) -> None:
        """The module is as it was."""
        if self._has_way():
            self.module.__dict__.pop(self._name, None)
            if self._own is not None:
                self.module.__dict__[self._name] = self._own
            self._there = self._own

    @property
    def is_passed_by(self) -> bool:
        """Whether calls do not, or did not, take what was placed."""
        return self.left_alone or isinstance(inspect.getattr_static(type(self.module), self._name, None), property)

    def _has_way(self) -> bool:
        there = self.module.__dict__.get(self._name)
        known = (self._own, *self._placed.values())
        own = any(there is one for one in known) or _is_method(there, self._original)
        gone = there is not self._there and there is None  # calls since then were not recorded
        self.left_alone = self.left_alone or not own or gone
        return own


class SwitchedCall:
    """In a model that compiles some of its code, one function stays in place whatever is recorded: if it changed, the
    code around it would be compiled anew. Where it is compiled with that code nothing is recorded."""

    def __init__(self, call: ModuleCall) -> None:
        self._call = call
        self._now = call.function
        call.place(_passed_over(self._switching(call.function)))

    def place(self, recording: Forward) -> None:
        """As ``ModuleCall.place``."""
        self._now = _passed_over(recording)

    def restore(self) -> None:
        """Nothing is recorded."""
        self._now = self._call.function

    def _switching(self, function: Forward) -> Forward:
        is_compiling = torch.compiler.is_compiling  # a constant to who compiles

        def switching(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return function(*args, **kwargs)
            return self._now(*args, **kwargs)

        return switching


def _passed_over(recording: Forward) -> Forward:
    """Where Dynamo looks at every function that is called, as under ``Sequential.compile()``, it goes on with what the
    recording calls: without it, it would not compile the code around that either."""
    skip, code = getattr(dynamo(), "skip_code", None), getattr(recording, "__code__", None)
    if skip is not None and code is not None:
        skip(code)
    return recording


def _is_method(one: object, other: object) -> bool:
    """Whether both are the same method: Python makes a new object of it each time that it is looked up."""
    return (
        isinstance(one, MethodType)
        and isinstance(other, MethodType)
        and one.__func__ is other.__func__
        and one.__self__ is other.__self__
    )


@contextmanager
def every_layer_called() -> Iterator[None]:
    """As an exporter has it: PyTorch has one operator for all that is in an encoder's layer, whose products would be
    nobody's in there."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
