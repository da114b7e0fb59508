"""Operators whose products torch has no FLOP count for: with one of them a module's MACs are not known."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

from torch.utils import _python_dispatch

_DispatchMode: Any = _python_dispatch.TorchDispatchMode  # untyped there

_PRODUCTS: Final = frozenset(
    [
        "mm", "addmm", "bmm", "baddbmm", "addbmm", "matmul", "mv", "addmv", "dot", "vdot", "ger", "addr",
        "einsum", "linear", "bilinear", "trilinear", "conv", "convolution", "rnn", "lstm", "gru", "attention",
        "transformer", "cdist", "pdist", "fft", "linalg", "cholesky", "lu", "qr", "svd", "solve", "inverse",
    ]
)  # fmt: skip
"""Words in the names of operators that multiply and add up."""

_NO_PRODUCTS: Final = frozenset(["upsample", "norm", "check"])
"""Words of those that have another one of these words as well (``upsample_bilinear2d``, ``linalg_vector_norm``)."""

_NAMED_SO: Final = frozenset(["aten", "prim", "prims", "profiler", "quantized", "torchvision", "mkldnn", "onednn"])
"""The libraries whose operators are named in these words; what anybody else's do nobody knows."""


class Uncounted(_DispatchMode):  # type: ignore[misc]
    """Counts the calls of operators with products that are not among ``counted`` (operators without overload)."""

    def __init__(self, counted: Container[Any]) -> None:
        super().__init__()
        self.calls = 0
        self._counted = counted

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """As in ``ShapeFlops``."""
        return False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if getattr(func, "_overloadpacket", None) not in self._counted:
            with self:  # under inference_mode an operator made of others comes whole, and only these are counted
                made: Any = func.decompose(*args, **named) if hasattr(func, "decompose") else NotImplemented
            if made is not NotImplemented:
                return made
        self.calls += has_unknown_products(func, self._counted)
        return func(*args, **named)


def has_unknown_products(func: Callable[..., Any], counted: Container[Any]) -> bool:
    """Whether an operator multiplies and adds up, or may, and is not counted."""
    operator: Any = func
    if getattr(operator, "_overloadpacket", None) in counted:
        return False
    namespace, _, name = str(operator.name()).rpartition("::") if hasattr(operator, "name") else ("", "", "")
    words = set(re.findall(r"[a-z]+", name.partition(".")[0]))
    return namespace not in _NAMED_SO or bool(words & _PRODUCTS and not words & _NO_PRODUCTS)
