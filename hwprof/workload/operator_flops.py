"""FLOPs of one operator's call, by its shapes: torch's own formulas, and those that torch lacks on CPUs. Of what
multiplies and has no formula it is known that they are unknown."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils import _python_dispatch, flop_counter

from hwprof.workload.tensors import tensors_in

_DispatchMode: Any = _python_dispatch.TorchDispatchMode  # untyped there
_TORCHS: Any = flop_counter.flop_registry  # by operators without overload

COMPILER: Final = "torch._dynamo"
KEPT_OUT: Final = "_torchdynamo_disable"
"""The mark of a function that it lets alone."""

QUANTIZED: Final = "quantized::"

Named = Mapping[str, Any]
"""An operator's arguments by the names that its schema gives them."""

_PRODUCTS: Final = frozenset(
    [
        "mm", "addmm", "bmm", "baddbmm", "addbmm", "matmul", "mv", "addmv", "dot", "vdot", "ger", "addr",
        "einsum", "linear", "bilinear", "trilinear", "conv", "convolution", "rnn", "lstm", "gru", "attention",
        "transformer", "gemm", "qlinear", "qconv", "cdist", "pdist", "fft", "linalg", "cholesky", "lu", "qr", "svd",
        "solve", "inverse",
    ]
)  # fmt: skip
"""Words in the names of operators that multiply and add up."""

_NO_PRODUCTS: Final = frozenset(["upsample", "norm", "check"])
"""Words of those that have another one of these words as well (``upsample_bilinear2d``, ``linalg_vector_norm``)."""

_NAMED_SO: Final = frozenset(["aten", "prim", "prims", "profiler", "quantized", "torchvision", "mkldnn", "onednn"])
"""The libraries whose operators are named in these words; what anybody else's do nobody knows."""


class CountedFlops(_DispatchMode):  # type: ignore[misc]
    """Adds up the FLOPs of the thread's operators while it is entered, as torch's ``FlopCounterMode`` does, which has
    formulas for fewer operators and hooks into the modules of every thread."""

    def __init__(self) -> None:
        super().__init__()
        self.by_type = Counter[str]()  # FLOPs by what is multiplied: "float32", "bfloat16", …
        self.uncounted = 0  # calls of operators whose products are in no total

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise the compiler is imported, to keep it away from this mode; see ``__enter__``."""
        return False

    def __enter__(self) -> Any:
        """Where the model brings the compiler, that shall not compile what is counted with here."""
        if COMPILER in sys.modules and not hasattr(CountedFlops.__torch_dispatch__, KEPT_OUT):
            compiler: Any = torch.compiler  # untyped there
            CountedFlops.__torch_dispatch__ = compiler.disable(CountedFlops.__torch_dispatch__)  # type: ignore[method-assign]
        return super().__enter__()

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if not _has_formula(func):
            with self:  # under inference_mode an operator made of others comes whole, and only these are counted
                made: Any = func.decompose(*args, **named) if hasattr(func, "decompose") else NotImplemented
            if made is not NotImplemented:
                return made
        out = func(*args, **named)
        self.add(func, args, named, out)
        return out

    def add(self, func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], out: Any) -> None:
        """Counts one call."""
        done = flops(func, args, named, out)
        if done:
            self.by_type[_element_type(func, args)] += done
        self.uncounted += done is None


def flops(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], out: Any) -> int | None:
    """Of a call that put out ``out``; a multiply-add is 2. None where it multiplies and nobody has its formula."""
    operator: Any = func
    formula = _FORMULAS.get(_name(operator))
    if formula is not None:
        count: int | None = formula(_by_name(operator, args, named), out)
        return count
    of_torch: Any = _TORCHS.get(getattr(operator, "_overloadpacket", None))
    if of_torch is not None:
        return int(of_torch(*args, **named, out_val=out))
    return None if has_unknown_products(func) else 0


def _element_type(func: Callable[..., Any], args: Sequence[Any]) -> str:
    """Of the numbers that an operator multiplies: those of its first tensor, after autocast."""
    if _name(func).startswith(QUANTIZED):
        return "int8"
    first: Any = next(tensors_in(args), None)
    return str(first.dtype).removeprefix("torch.") if first is not None else ""


def has_unknown_products(func: Callable[..., Any]) -> bool:
    """Whether an operator multiplies and adds up, or may, and has no formula."""
    operator: Any = func
    if _has_formula(operator):
        return False
    namespace, _, name = str(operator.name()).rpartition("::") if hasattr(operator, "name") else ("", "", "")
    words = set(re.findall(r"[a-z]+", name.partition(".")[0]))
    return namespace not in _NAMED_SO or bool(words & _PRODUCTS and not words & _NO_PRODUCTS)


def _has_formula(operator: Any) -> bool:
    return getattr(operator, "_overloadpacket", None) in _TORCHS or _name(operator) in _FORMULAS


def _name(operator: Any) -> str:
    """``aten::mv``, without the overload."""
    return str(operator.name()).partition(".")[0] if hasattr(operator, "name") else ""


def _by_name(operator: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Named:
    names = [argument.name for argument in operator._schema.arguments]
    return dict(zip(names, args, strict=False)) | dict(named)


def _attention(given: Named, out: Any) -> int:
    of_shapes: Any = flop_counter.sdpa_flop_count  # untyped there
    return int(of_shapes(given["query"].shape, given["key"].shape, given["value"].shape))


def _rnn_layer(given: Named, out: Any) -> int:
    """One direction of one layer: every gate's two products, for each element of each step."""
    steps = math.prod(given["input"].shape[:-1])
    return int(2 * steps * (given["weight0"].numel() + given["weight1"].numel()))


def _self_attention(rows: int, keys: int, width: int) -> int:
    """Four projections of ``rows`` tokens, and two products with ``keys`` tokens each."""
    return 2 * rows * width * (4 * width + 2 * keys)


def _native_attention(given: Named, out: Any) -> int | None:
    query, key = given["query"], given["key"]
    if query.is_nested or key is not query or given["value"] is not query:
        return None
    return _self_attention(math.prod(query.shape[:2]), query.shape[1], query.shape[2])


def _encoder_layer(given: Named, out: Any) -> int | None:
    """The fast path of ``nn.TransformerEncoderLayer``: attention, then two linear layers."""
    source = given["src"]
    if source.is_nested or source.ndim != 3:
        return None
    tokens = math.prod(source.shape[:2])
    linear = 2 * tokens * (given["ffn_weight_1"].numel() + given["ffn_weight_2"].numel())
    return _self_attention(tokens, source.shape[1], source.shape[2]) + int(linear)


def _matrix_by_vector(given: Named, out: Any) -> int:
    matrix = given["mat"] if "mat" in given else given["self"]
    return int(2 * matrix.numel())


def _dot(given: Named, out: Any) -> int:
    return int(2 * given["self"].numel())


def _euclidean_distances(given: Named, out: Any) -> int:
    """``cdist`` of many rows: one product of both, each with a column for its squares and one of ones."""
    return int(2 * out.numel() * (given["x1"].shape[-1] + 2))


def _quantized_linear(given: Named, out: Any) -> int:
    """The weights are packed; the width of the output says how many columns they have."""
    return int(2 * given["X"].numel() * out.shape[-1])


_FORMULAS: Final[Mapping[str, Callable[[Named, Any], int | None]]] = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::mkldnn_rnn_layer": _rnn_layer,
    "aten::_native_multi_head_attention": _native_attention,
    "aten::_transformer_encoder_layer_fwd": _encoder_layer,
    "aten::mv": _matrix_by_vector,
    "aten::addmv": _matrix_by_vector,
    "aten::dot": _dot,
    "aten::vdot": _dot,
    "aten::_euclidean_dist": _euclidean_distances,
    "quantized::linear": _quantized_linear,
    "quantized::linear_relu": _quantized_linear,
    "quantized::linear_dynamic": _quantized_linear,
    "quantized::linear_relu_dynamic": _quantized_linear,
}
"""What torch's counter leaves out, by the operators' names (they exist in some builds only)."""
