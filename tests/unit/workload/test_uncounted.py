"""Of which operators the products are not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hwprof.workload.uncounted import has_unknown_products


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("aten::mkldnn_rnn_layer", True),
        ("aten::_trilinear", True),
        ("aten::_fft_r2c", True),
        ("aten::_native_multi_head_attention", True),
        ("aten::mv", True),
        ("quantized::linear_dynamic", True),
        ("quantized::conv2d_relu.new", True),
        ("theirs::anything", True),
        ("quantized::add", False),
        ("torchvision::nms", False),
        ("aten::lgamma", False),
        ("aten::dropout", False),
        ("aten::upsample_bilinear2d.vec", False),
        ("aten::linalg_vector_norm", False),
        ("aten::native_layer_norm", False),
        ("aten::embedding", False),
        ("profiler::_record_function_enter_new", False),
    ],
)
def test_by_the_operators_name(name: str, unknown: bool) -> None:
    operator: Any = SimpleNamespace(name=lambda: name)
    assert has_unknown_products(operator, ()) == unknown


def test_what_is_counted_is_known() -> None:
    operator = torch.ops.aten.mv.default
    assert has_unknown_products(operator, ())
    assert not has_unknown_products(operator, {torch.ops.aten.mv})
