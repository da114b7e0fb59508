"""FLOPs by shapes, and of which operators the products are not known."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hwprof.workload.operator_flops import CountedFlops, has_unknown_products


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("aten::mkldnn_rnn_layer", False),
        ("aten::_trilinear", True),
        ("aten::_fft_r2c", True),
        ("aten::_native_multi_head_attention", False),
        ("aten::mv", False),
        ("quantized::linear_dynamic", False),
        ("quantized::conv2d_relu.new", True),
        ("aten::cdist", True),
        ("theirs::anything", True),
        ("onednn::qlinear_pointwise", True),
        ("onednn::qconv2d_pointwise", True),
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
    assert has_unknown_products(operator) == unknown


def counted(module: nn.Module, *arguments: torch.Tensor) -> tuple[int, int]:
    with torch.inference_mode(), CountedFlops() as flops:
        module.eval()(*arguments)
    return flops.by_type.total(), flops.uncounted


def test_an_lstm_multiplies_each_step_by_all_gates() -> None:
    steps, batch, width, hidden = 20, 3, 32, 64
    first, second = 4 * hidden * (width + hidden), 4 * hidden * (2 * hidden + hidden)  # both directions feed the second
    lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True)
    assert counted(lstm, torch.zeros(steps, batch, width)) == (2 * steps * batch * 2 * (first + second), 0)


@pytest.mark.parametrize(
    ("layer", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1), (nn.LSTMCell, 4), (nn.GRUCell, 3), (nn.RNNCell, 1)]
)
def test_recurrent_layers_multiply_inputs_and_hidden_units_by_every_gate(layer: Callable[..., Any], gates: int) -> None:
    """As the documentation says."""
    steps, batch, width, hidden = (5 if layer in (nn.LSTM, nn.GRU, nn.RNN) else 1), 3, 16, 24
    x = torch.rand(steps, batch, width) if steps > 1 else torch.rand(batch, width)
    expected = 2 * steps * batch * gates * hidden * (width + hidden)
    assert counted(layer(width, hidden), x) == (expected, 0)


def test_products_that_the_documentation_says_are_not_known() -> None:
    quantize: Any = torch.ao.quantization.quantize_dynamic  # untyped there
    x = torch.rand(5, 3, 16)
    for layer in (nn.LSTM(16, 24), nn.GRU(16, 24)):
        assert counted(quantize(nn.Sequential(layer), {type(layer)}), x) == (0, 1)
    assert counted(nn.Bilinear(16, 16, 4), x, x) == (0, 1)


def test_the_same_lstm_counts_the_same_without_its_fused_operator() -> None:
    lstm, x = nn.LSTM(32, 64), torch.zeros(5, 1, 32)
    fused = counted(lstm, x)
    with torch.backends.mkldnn.flags(enabled=False):
        assert counted(lstm, x) == fused == (2 * 5 * 4 * 64 * (32 + 64), 0)


def test_attention_counts_the_same_on_its_fast_path() -> None:
    """Without gradients torch executes the module as one operator, with them as products that it counts itself."""
    attention, x = nn.MultiheadAttention(32, 4, batch_first=True).eval(), torch.zeros(2, 7, 32)
    with CountedFlops() as slow:  # enabled gradients keep it from the fast path
        attention(x, x, x)
    assert counted(attention, x, x, x) == (slow.by_type.total(), 0)
    assert slow.by_type.total() == 2 * 2 * 7 * 32 * (4 * 32 + 2 * 7)


def test_an_encoder_layer_counts_the_same_on_its_fast_path() -> None:
    layer, x = nn.TransformerEncoderLayer(32, 4, 80, batch_first=True).eval(), torch.zeros(2, 7, 32)
    with CountedFlops() as slow:
        layer(x)
    assert counted(layer, x) == (slow.by_type.total(), 0)


def test_a_quantised_linear_is_as_much_as_the_plain_one() -> None:
    plain = nn.Sequential(nn.Linear(16, 8), nn.ReLU())
    quantize: Any = torch.ao.quantization.quantize_dynamic  # untyped there
    quantised = quantize(plain, {nn.Linear})
    x = torch.rand(5, 16)
    assert counted(quantised, x) == counted(plain, x) == (2 * 5 * 16 * 8, 0)


@pytest.mark.parametrize("operation", [torch.mv, torch.addmv, torch.dot])
def test_products_with_vectors(operation: Callable[..., torch.Tensor]) -> None:
    vector, matrix = torch.rand(6), torch.rand(4, 6)
    arguments = {torch.mv: (matrix, vector), torch.addmv: (torch.rand(4), matrix, vector), torch.dot: (vector, vector)}
    with CountedFlops() as flops:
        operation(*arguments[operation])
    assert (flops.by_type.total(), flops.uncounted) == (2 * 6 if operation is torch.dot else 2 * 24, 0)


def executed_products(call: Callable[[], object]) -> int:
    """FLOPs of the matrix products that torch's profiler saw."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        call()
    found = [event.input_shapes[:2] for event in profile.events() or [] if event.name in ("aten::mm", "aten::bmm")]
    return sum(2 * math.prod(first) * second[-1] for first, second in found)


@pytest.mark.parametrize("shapes", [((200, 16), (300, 16)), ((2, 40, 7), (2, 9, 7))])
def test_distances_by_a_product_are_the_product_that_is_executed(shapes: tuple[tuple[int, ...], ...]) -> None:
    """``cdist`` of many rows is one operator to whoever watches operators, and a matrix product within it."""
    first, second = (torch.rand(shape) for shape in shapes)
    with torch.inference_mode(), CountedFlops() as flops:
        torch.cdist(first, second)
    executed = executed_products(lambda: torch.cdist(first, second))
    assert (flops.by_type.total(), flops.uncounted) == (executed, 0)
    assert executed > 0


def test_distances_one_by_one_are_not_known() -> None:
    few = torch.rand(5, 16)
    with torch.inference_mode(), CountedFlops() as flops:
        torch.cdist(few, few)
    assert (flops.by_type.total(), flops.uncounted) == (0, 1)


COMPILED = """
import sys, torch
from hwprof.workload.operator_flops import CountedFlops
assert "torch._dynamo" not in sys.modules
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()), backend="eager")
for width in range(20):
    with torch.inference_mode(), CountedFlops() as flops:
        model(torch.zeros(width + 2, 8))
    assert sum(flops.by_type.values()) == 2 * (width + 2) * 8 * 4, flops.by_type
"""


def test_the_compiler_compiles_nothing_of_the_counting() -> None:
    """In a process of its own: here it may be there already."""
    environment = os.environ | {"TORCH_LOGS": "+dynamo"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "operator_flops.py" not in done.stderr
