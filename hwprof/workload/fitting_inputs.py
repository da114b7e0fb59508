"""Inputs that a user's model would take, as far as its layers tell: what to give in the place of refused ones."""

from __future__ import annotations

import inspect
import traceback
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from hwprof.workload.layer_inputs import IMAGE, TOKENS, taken, wish
from hwprof.workload.model_inputs import Inputs
from hwprof.workload.spec import InputSpec
from hwprof.workload.tensors import input_text, tensors_in

WORDS: Final = InputSpec(shape=TOKENS, dtype="int64", range=(0, 30000))

NONE: Final[Inputs] = ((), {})


class Example(NamedTuple):
    """An input that the model could take."""

    name: str | None  # of forward's parameter
    spec: InputSpec

    def text(self) -> str:
        """``1x128 int64 0..4999``."""
        return _text(self.spec, " ")


def signature(module: nn.Module) -> str:
    """``(x, mask=None)``, of ``forward``."""
    try:
        return str(inspect.signature(module.forward))
    except (TypeError, ValueError):  # TorchScript has none
        return "(...)"


def example(module: nn.Module, inputs: Inputs = NONE, error: BaseException | None = None) -> Example | None:
    """What the input would have to be that a layer refused, else what the first layer wants that says so, where the
    model has one input. None of the ``inputs`` again, which the model got in vain; None where a layer refused what
    others have made of these: then nobody knows what would become of another shape."""
    needed = _needed(module)
    only = needed[0] if len(needed) == 1 else None
    bound = _bound(module, inputs)
    if bound is not None and (refusal := _refusal(error)) is not None:
        tensor = next((one for one in tensors_in(inputs) if _comes_from(one, refusal)), None)
        spec = _unlike(tensor, refusal.layer) if tensor is not None else None
        if spec is None:
            return None
        return Example(next((name for name, value in bound.items() if value is tensor), only), spec)
    first = next((layer for layer in module.modules() if taken(layer) is not None), None)
    if first is None or len(needed) > 1:
        return None
    given = next(tensors_in(inputs), None)
    if given is None or bound is None:
        spec = taken(first, tuple(given.shape) if given is not None else ())
    else:
        spec = taken(first, tuple(given.shape))
        spec = None if spec is None or _is_like(given, spec) else spec  # its sizes would be no more than a guess
    return Example(only, spec) if spec is not None else None


def options(module: nn.Module, found: Example | None, inputs: Inputs = NONE, error: BaseException | None = None) -> str:
    """The options for what ``forward`` cannot do without: with the example that was found; else, where nothing was
    refused yet, with general ones."""
    needed = _needed(module)
    if len(needed) > 1 or (found is not None and found.name not in (None, *needed)):
        named = {found.name: _option(*found)} if found is not None and found.name is not None else {}
        return " ".join(({name: f"--input {name}:SHAPE:DTYPE" for name in needed} | named).values())
    name = needed[0] if needed else None
    if found is not None:
        return _only_option(*found)
    if error is None:
        return f"{_only_option(name, InputSpec(shape=IMAGE))}, or {_option(name, WORDS)}"
    given = list(tensors_in(inputs))
    if len(given) == 1 and _wants_integers(given, error):
        return _option(name, InputSpec(shape=tuple(given[0].shape), dtype="int64"))
    return f"--input {f'{name}:' if name else ''}SHAPE:DTYPE"


def elsewhere(module: nn.Module, inputs: Inputs) -> str | None:
    """On what device some of it is, which is not the processor."""
    tensors = [*module.parameters(), *module.buffers(), *tensors_in(inputs)]
    return next((tensor.device.type for tensor in tensors if tensor.device.type != "cpu"), None)


def _needed(module: nn.Module) -> list[str]:
    """The names of ``forward``'s parameters without defaults, else of its first."""
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return []
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [one for one in parameters if one.kind not in many]
    return [one.name for one in named if one.default is one.empty] or [one.name for one in named[:1]]


def _bound(module: nn.Module, inputs: Inputs) -> dict[str, Any] | None:
    """The inputs by the names of ``forward``'s parameters; None where it has no such, or they have no signature."""
    try:
        return dict(inspect.signature(module.forward).bind(*inputs[0], **inputs[1]).arguments)
    except (TypeError, ValueError):
        return None


class _Refusal(NamedTuple):
    """A layer that the exception came through, of a class whose wishes are known, with what it got."""

    layer: nn.Module
    tensors: list[torch.Tensor]


def refused_by(module: nn.Module, error: BaseException) -> str | None:
    """``2 (Linear) has in_features 100 and got 1x192``: the layer that raised it; None where it was none whose sizes
    are known."""
    found = _refusal(error)
    if found is None:
        return None
    path = next((path for path, layer in module.named_modules() if layer is found.layer), "")
    kind = type(found.layer).__name__
    named = f"{path} ({kind})" if path else kind
    return f"{named} has {wish(found.layer)} and got {', '.join(map(input_text, found.tensors))}"


def _refusal(error: BaseException | None) -> _Refusal | None:
    """The innermost one. torch's own calls of modules have both in their variables."""
    found: _Refusal | None = None
    for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None):
        module, arguments = frame.f_locals.get("self"), frame.f_locals.get("args")
        if isinstance(module, nn.Module) and isinstance(arguments, tuple) and wish(module) is not None:
            theirs = list(tensors_in((arguments, frame.f_locals.get("kwargs"))))
            found = _Refusal(module, theirs) if theirs else found
    return found


def _comes_from(tensor: torch.Tensor, refusal: _Refusal) -> bool:
    """Whether the layer got that input, or something of its shape and type: what layers before make of it is alike."""
    return any(tensor is one or (tensor.shape, tensor.dtype) == (one.shape, one.dtype) for one in refusal.tensors)


def _unlike(tensor: torch.Tensor, layer: nn.Module) -> InputSpec | None:
    """What the layer takes, in the tensor's shape where it can, and not what the tensor is."""
    specs = (taken(layer, tuple(tensor.shape)), taken(layer))
    return next((spec for spec in specs if spec is not None and not _is_like(tensor, spec)), None)


def _is_like(tensor: torch.Tensor, spec: InputSpec) -> bool:
    if tuple(tensor.shape) != spec.shape or tensor.dtype is not getattr(torch, spec.dtype):
        return False
    if spec.range is None or not tensor.numel():
        return True
    return spec.range[0] <= int(tensor.min()) and int(tensor.max()) <= spec.range[1]


def _wants_integers(given: list[torch.Tensor], error: BaseException | None) -> bool:
    """As torch's messages have it: "scalar types: Long, Int", "should be Long"; of integers they speak too."""
    return "Long" in str(error) and all(tensor.is_floating_point() for tensor in given)


def _only_option(name: str | None, spec: InputSpec) -> str:
    """Of a model with one input."""
    if spec.dtype == "float32":
        return f"--input-shape {','.join(map(str, spec.shape))}"
    return _option(name, spec)


def _option(name: str | None, spec: InputSpec) -> str:
    return f"--input {f'{name}:' if name else ''}{_text(spec, ':')}"


def _text(spec: InputSpec, between: str) -> str:
    """``1x128:int64:0..4999``; the usual type is not said."""
    shape = "x".join(map(str, spec.shape))
    kind = [spec.dtype] if spec.dtype != "float32" else []
    ends = [f"{spec.range[0]:.0f}..{spec.range[1]:.0f}"] if spec.range is not None else []
    return between.join([shape, *kind, *ends])
