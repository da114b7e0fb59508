"""FLOPs and shapes of a forward, without the arithmetic of its convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from hwprof.workload.operator_flops import CountedFlops


class ShapeFlops(CountedFlops):
    """Counts FLOPs; convolutions, concatenations and SiLU put out zeros of the right shape that take no memory.

    Not on the meta device, whose kernels import SymPy and torch's compiler first: two seconds.
    """

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        shape = _shape_of(func, args)
        out = func(*args, **named) if shape is None else _first_tensor(args).new_zeros(()).expand(shape)
        self.add(func, args, named, out)
        return out


def _first_tensor(args: Sequence[Any]) -> torch.Tensor:
    first: torch.Tensor = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
    return first


def _shape_of(func: Callable[..., Any], args: Sequence[Any]) -> Sequence[int] | None:
    """The output's shape, where it is known without running the operator."""
    if func is torch.ops.aten.convolution.default and not args[6]:  # not transposed
        return _convolved(*args[:6])
    if func is torch.ops.aten.silu.default:
        return tuple(args[0].shape)
    if func is torch.ops.aten.cat.default:
        return _concatenated(args[0], args[1] if len(args) > 1 else 0)
    return None


def _convolved(
    x: torch.Tensor, weight: torch.Tensor, bias: Any, stride: list[int], padding: list[int], dilation: list[int]
) -> list[int]:
    """floor((n + 2p - d(k - 1) - 1) / s) + 1 in each direction."""
    sizes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    return [x.shape[0], weight.shape[0], *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes)]


def _concatenated(tensors: Sequence[torch.Tensor], dimension: int) -> list[int] | None:
    """None where it is no plain case: torch decides then."""
    first = tensors[0]
    if not first.ndim or any(tensor.ndim != first.ndim or tensor.dtype != first.dtype for tensor in tensors):
        return None
    along = dimension % first.ndim
    others = {(*tensor.shape[:along], *tensor.shape[along + 1 :]) for tensor in tensors}
    if len(others) != 1:
        return None
    return [*first.shape[:along], sum(tensor.shape[along] for tensor in tensors), *first.shape[along + 1 :]]
