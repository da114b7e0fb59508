"""What a remedy or a variant changes in the process that does the workload: before the model is built, or of the built
model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn
from torch.utils import _pytree as pytree

from hwprof.errors import HwprofError, UsageError, first_line
from hwprof.workload.module_call import FORWARD, Forward, as_a_whole, seen_inside
from hwprof.workload.runtimes.flat_call import FlatCall, Structure, flatten, kind_of, tensors_of

if TYPE_CHECKING:  # it is slow to import, and few want it
    from hwprof.workload.runtimes.runtime import Runtime

TO_PYTHON: Final = "Converting a tensor to a Python"
"""What torch's tracer says where it loses a value of a tensor."""


class FrozenWarning(UserWarning):
    """Outputs were compared of inputs for which they are right."""


FORMATS: Final = {4: torch.channels_last, 5: torch.channels_last_3d}
"""By the number of dimensions."""


ANOTHER: Final = "another variant: "


def _channels_last(module: nn.Module) -> None:
    """The model's weights, and at each call what it is given. Raises ``HwprofError`` where nothing is to be changed."""
    weights = [one for one in [*module.parameters(), *module.buffers()] if one.ndim in FORMATS]
    if not weights:
        raise HwprofError("the model has no weights of 4 or 5 dimensions", f"{ANOTHER}compile or bfloat16")
    for weight in weights:
        weight.data = weight.data.contiguous(memory_format=FORMATS[weight.ndim])
    module.register_forward_pre_hook(_in_channels_last, with_kwargs=True, prepend=True)


def _in_channels_last(_: nn.Module, arguments: Any, keywords: Any) -> Any:
    def changed(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.ndim in FORMATS:
            return value.contiguous(memory_format=FORMATS[value.ndim])
        return value

    return pytree.tree_map(changed, (arguments, keywords))


def _bfloat16(module: nn.Module) -> None:
    """Autocast around each call; what comes out is FP32 again, as what follows expects."""
    forward = module.forward

    def cast(*arguments: Any, **keywords: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = forward(*arguments, **keywords)
        return pytree.tree_map(_as_float32, found)

    module.forward = cast


def _as_float32(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype is torch.bfloat16 else value


def _bfloat16_weights(module: nn.Module) -> None:
    """The model's weights, and at each call what it is given; what comes out is FP32 again."""
    module.bfloat16()
    forward = module.forward

    def cast(*arguments: Any, **keywords: Any) -> Any:
        given, named = pytree.tree_map(_as_bfloat16, (arguments, keywords))
        return pytree.tree_map(_as_float32, forward(*given, **named))

    module.forward = cast


def _as_bfloat16(value: Any) -> Any:
    return value.bfloat16() if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


def _int8(module: nn.Module) -> None:
    """Linear layers in the model, by torch's own dynamic quantisation. Raises ``HwprofError`` where there are none, or
    where they are of a type that it does not take."""
    linear = [one for name, one in module.named_modules() if name and type(one) is nn.Linear]
    if not linear:
        raise HwprofError(
            "the model has no Linear layers in it, which is what is quantised dynamically",
            f"{ANOTHER}bfloat16 or channels_last",
        )
    if other := next((one.weight.dtype for one in linear if one.weight.dtype is not torch.float32), None):
        raise HwprofError(
            f"the model has Linear layers of {other}, and those of torch.float32 are quantised dynamically",
            f"the model in float32, or {ANOTHER}compile",
        )
    torch.backends.mha.set_fastpath_enabled(False)  # it asks for weights that quantised layers do not have
    with warnings.catch_warnings(action="ignore"):  # that another package is to do it some day
        quantize: Any = torch.ao.quantization.quantize_dynamic
        quantize(module, {nn.Linear}, dtype=torch.qint8, inplace=True)


def _torchscript(module: nn.Module) -> None:
    """Traced with the first inputs of each shape, and frozen."""
    forward = module.forward
    traced: dict[tuple[Any, ...], Forward] = {}

    def run(*arguments: Any, **keywords: Any) -> Any:
        leaves, spec = flatten(arguments, keywords)
        key = kind_of(leaves, spec)
        if key not in traced:
            module.forward, there = forward, module.forward
            try:
                traced[key] = _traced(module, leaves, spec)
            finally:
                module.forward = there
        return traced[key](tensors_of(leaves))

    module.forward = as_a_whole(run)


def _traced(module: nn.Module, leaves: Sequence[Any], spec: pytree.TreeSpec) -> Forward:
    given: list[Structure] = []
    script: Any = torch.jit
    flat, tensors = FlatCall(module, leaves, spec, given.append), tuple(tensors_of(leaves))
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = script.freeze(script.trace(flat, tensors, check_trace=False, strict=False))
    except Exception as error:  # whatever the model's code, or the tracer, may raise
        raise HwprofError(f"the model cannot be traced: {first_line(error)}") from error
    _tell_of_frozen(said)
    return lambda following: given[-1].filled(found(*following))


def _tell_of_frozen(said: Sequence[warnings.WarningMessage]) -> None:
    """Of all that the tracer says what makes outputs of other inputs wrong."""
    script: Any = torch.jit
    frozen: type[Warning] = script.TracerWarning
    places = dict.fromkeys(
        f"{Path(one.filename).name}:{one.lineno}"
        for one in said
        if issubclass(one.category, frozen) and str(one.message).startswith(TO_PYTHON)
    )
    if places:
        first, *others = places
        further = f" and {len(others)} more" if others else ""
        text = f"TorchScript: what the model's code decides by tensors' values ({first}{further}) is frozen as for the"
        warnings.warn(FrozenWarning(f"{text} first input: others may have wrong outputs"), stacklevel=2)


def _compile(module: nn.Module) -> None:
    """With constant weights, which inductor then lays out as its kernels want them; for each shape of its own. Of the
    module's ``forward``: ``module.compile`` compiles nothing of a class of torch's own, as ``nn.Sequential`` is."""
    import torch._inductor.config as inductor

    settings: Any = inductor
    settings.freezing = True
    module.forward = torch.compile(module.forward, dynamic=False)


def _onnxruntime(module: nn.Module) -> None:
    from hwprof.workload.runtimes.onnx_runtime import OnnxRuntime

    _run_by(OnnxRuntime(), module)


def _openvino(module: nn.Module) -> None:
    from hwprof.workload.runtimes.open_vino import OpenVino

    _run_by(OpenVino(), module)


def _run_by(runtime: Runtime, module: nn.Module) -> None:
    """Calls of it raise ``HwprofError`` where it cannot be done."""
    from hwprof.workload.runtimes.stand_in import StandIn

    stand_in = StandIn(module, runtime)

    def run(*arguments: Any, **keywords: Any) -> Any:
        return stand_in.run(*arguments, **keywords)

    module.forward = seen_inside(run, stand_in)


def _flush_denormals() -> None:
    """Threads that are started later take it over."""
    if not torch.set_flush_denormal(True):
        raise UsageError("this processor cannot flush denormals to zero")


BEFORE: Final = MappingProxyType({"flush_denormals": _flush_denormals})
"""Called before the model is built."""

CODE: Final[MappingProxyType[str, Callable[[nn.Module], None]]] = MappingProxyType(
    {"compile": _compile, "torchscript": _torchscript}
)
"""What puts other code in the place of the model's own, in which no layer is seen."""

RUNTIMES: Final[MappingProxyType[str, Callable[[nn.Module], None]]] = MappingProxyType(
    {"onnxruntime": _onnxruntime, "openvino": _openvino}
)
"""What has another program than PyTorch run the model, which tells of its layers."""

AFTER: Final[MappingProxyType[str, Callable[[nn.Module], None]]] = MappingProxyType(
    {
        "channels_last": _channels_last,
        "int8": _int8,
        "bfloat16": _bfloat16,
        "bfloat16_weights": _bfloat16_weights,
        **CODE,
        **RUNTIMES,
    }
)
"""Called with each built model, in this order: what is compiled has what the others changed."""


def of_outputs(names: Iterable[str]) -> bool:
    """Whether one of them is made of a built model, whose outputs before and after can be compared in one process."""
    return any(name in AFTER for name in names)


def before_building(names: Iterable[str]) -> None:
    """Makes those that come before the model is built. Raises ``UsageError``."""
    for name in names:
        if name in BEFORE:
            BEFORE[name]()


def of_built(modules: Iterable[nn.Module], names: Collection[str]) -> Callable[[], None]:
    """Makes the others; what comes back takes other code out of the models' places again. Raises ``HwprofError``."""
    own: list[tuple[nn.Module, Any]] = []
    for module in modules:
        for name, change in AFTER.items():
            if name not in names:
                continue
            if name in CODE or name in RUNTIMES:
                own.append((module, module.__dict__.get(FORWARD)))
            change(module)

    def as_they_were() -> None:
        for module, forward in reversed(own):
            module.__dict__.pop(FORWARD, None)
            if forward is not None:
                module.__dict__[FORWARD] = forward

    return as_they_were
