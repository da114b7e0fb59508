"""What a remedy changes in the process that does the workload: before the model is built, or of the built model."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import nn
from torch.utils import _pytree as pytree

from hwprof.errors import HwprofError, UsageError

FORMATS: Final = {4: torch.channels_last, 5: torch.channels_last_3d}
"""By the number of dimensions."""


def _channels_last(module: nn.Module) -> None:
    """The model's weights, and at each call what it is given. Raises ``HwprofError`` where nothing is to be changed."""
    weights = [one for one in [*module.parameters(), *module.buffers()] if one.ndim in FORMATS]
    if not weights:
        raise HwprofError("the model has no weights of 4 or 5 dimensions")
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


def _compile(module: nn.Module) -> None:
    """With constant weights, which inductor then lays out as its kernels want them; for each shape of its own. Of the
    module's ``forward``: ``module.compile`` compiles nothing of a class of torch's own, as ``nn.Sequential`` is."""
    import torch._inductor.config as inductor

    settings: Any = inductor
    settings.freezing = True
    module.forward = torch.compile(module.forward, dynamic=False)


def _flush_denormals() -> None:
    """Threads that are started later take it over."""
    if not torch.set_flush_denormal(True):
        raise UsageError("this processor cannot flush denormals to zero")


BEFORE: Final = MappingProxyType({"flush_denormals": _flush_denormals})
"""Called before the model is built."""

AFTER: Final[MappingProxyType[str, Callable[[nn.Module], None]]] = MappingProxyType(
    {"channels_last": _channels_last, "bfloat16": _bfloat16, "compile": _compile}
)
"""Called with each built model, in this order: what is compiled has what the others changed."""
