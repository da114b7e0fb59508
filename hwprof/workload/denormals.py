"""Which layers have denormal numbers to read or write: one more call of the model, in which nothing is timed.

Of each tensor at most ``MOST`` numbers are looked at, at even distances: a share of 1% is known to 0.2%.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch
from torch import nn

from hwprof.workload.layer_hooks import is_leaf, layers, room_on_the_stack
from hwprof.workload.module_call import Forward, ModuleCall
from hwprof.workload.protocol import Workload
from hwprof.workload.tensors import tensors_in, without_repetition

MOST: Final = 1 << 14
"""Numbers of a tensor that are looked at: fewer than PyTorch shares out to threads."""

SMALLEST: Final = {
    dtype: torch.finfo(dtype).smallest_normal for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
}


def denormal_shares(workload: Workload) -> dict[str, float]:
    """Of each leaf layer that the first forward calls: the largest share among its inputs, outputs, weights,
    buffers and attributes of numbers that are neither 0 nor normal. Raises what the model raises."""
    found: dict[str, float] = {}
    watched = list(_leaves(workload.modules))
    calls = [(path, ModuleCall(module)) for path, module in watched]
    for path, call in calls:
        call.place(_looked_at(path, call, found))
    try:
        with torch.inference_mode(), room_on_the_stack():
            workload.forwards()[0].run()
    finally:
        for _, call in calls:
            call.restore()
    return found


def denormal_share(tensor: torch.Tensor) -> float:
    """Of a tensor's numbers; 0 of one that has none, or whose numbers cannot be looked at."""
    smallest = SMALLEST.get(tensor.dtype)
    if smallest is None or tensor.layout is not torch.strided or not tensor.numel() or tensor.device.type != "cpu":
        return 0.0
    numbers = _some(without_repetition(tensor.detach())).double().abs()
    return float(((numbers > 0) & (numbers < smallest)).double().mean())


def _some(tensor: torch.Tensor) -> torch.Tensor:
    """At most ``MOST`` of its numbers, without a copy of the whole. Chance picks them, the same each time: what repeats
    in a tensor repeats in steps."""
    if tensor.numel() <= MOST:
        return tensor
    chance = torch.Generator().manual_seed(0)
    return tensor[tuple(torch.randint(size, (MOST,), generator=chance) for size in tensor.shape)]


def _leaves(modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, nn.Module]]:
    for prefix, root in modules.items():
        yield from ((path, module) for path, module in layers(prefix, root) if is_leaf(module))


def _looked_at(path: str, call: ModuleCall, found: dict[str, float]) -> Forward:
    def looked_at(*arguments: Any, **keywords: Any) -> Any:
        output = call.function(*arguments, **keywords)
        tensors = [*tensors_in(call.given(arguments)), *tensors_in(keywords), *tensors_in(output), *_held(call.module)]
        once = {id(tensor): tensor for tensor in tensors}
        found[path] = max([found.get(path, 0.0), *map(_share_if_readable, once.values())])
        return output

    return looked_at


def _held(module: nn.Module) -> Iterator[torch.Tensor]:
    """Weights, buffers and plain attributes that are tensors; what a class computes (properties) is not asked for."""
    for values in (module.parameters(recurse=False), module.buffers(recurse=False), list(vars(module).values())):
        yield from (value for value in values if issubclass(type(value), torch.Tensor))  # __class__ may raise


def _share_if_readable(tensor: torch.Tensor) -> float:
    """0 of a tensor whose own class, or lack of any numbers, makes looking at it fail."""
    try:
        return denormal_share(tensor)
    except Exception:  # whatever a stranger's class raises
        return 0.0
