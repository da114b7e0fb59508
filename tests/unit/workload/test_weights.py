"""Weights are counted by hand: what is packed as int8 takes a byte each, and biases stay float32."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hwprof.workload.layer_hooks import is_leaf, type_name
from hwprof.workload.tensors import size_bytes
from hwprof.workload.weights import WeightReader, Weights

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch.ao, which is deprecated

ao: Any = torch.ao.quantization  # untyped there

LINEAR = Weights(8 * 16 + 16, 8 * 16 + 4 * 16)
LSTM_MATRICES, LSTM_BIASES = 2 * 4 * 16 * (8 + 16), 2 * 2 * 4 * 16  # two directions, four gates


def weights(module: nn.Module) -> Weights | None:
    return WeightReader().weights(module)


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU()).eval()


def dynamic(module: nn.Module, kind: type[nn.Module], dtype: torch.dtype = torch.qint8) -> nn.Module:
    quantised: nn.Module = ao.quantize_dynamic(module, {kind}, dtype=dtype)
    return quantised


def converted(module: nn.Module, qconfig: Any) -> nn.Module:
    """Quantised beforehand."""
    module.eval().qconfig = qconfig
    ao.prepare(module, inplace=True)
    ao.convert(module, inplace=True)
    return module


def test_a_plain_model_has_its_parameters_once() -> None:
    one = nn.Linear(8, 16)
    assert weights(nn.Sequential(one, nn.BatchNorm1d(16), one)) == (8 * 16 + 16 + 2 * 16, 4 * (8 * 16 + 16 + 2 * 16))
    assert weights(nn.ReLU()) == (0, 0)


def test_linear_layers_quantised_as_they_are_called() -> None:
    assert weights(dynamic(linear(), nn.Linear)) == LINEAR
    assert weights(dynamic(linear(), nn.Linear, torch.float16)) == (LINEAR.number, 2 * 8 * 16 + 4 * 16)


@pytest.mark.parametrize(("dtype", "element"), [(torch.qint8, 1), (torch.float16, 2)])
def test_a_quantised_lstm_is_one_layer_with_its_weights(dtype: torch.dtype, element: int) -> None:
    lstm = dynamic(nn.Sequential(nn.LSTM(8, 16, bidirectional=True)), nn.LSTM, dtype).get_submodule("0")
    assert is_leaf(lstm) and type_name(lstm) == "DynamicQuantizedLSTM"
    assert weights(lstm) == (LSTM_MATRICES + LSTM_BIASES, element * LSTM_MATRICES + 4 * LSTM_BIASES)


def test_layers_quantised_beforehand() -> None:
    engine = "fbgemm" if "fbgemm" in torch.backends.quantized.supported_engines else "qnnpack"
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2))
    quantised = converted(model, ao.get_default_qconfig(engine))
    assert [type_name(layer) for layer in quantised.children()] == ["QuantizedConv2d", "Flatten", "QuantizedLinear"]
    assert weights(quantised) == (4 * 27 + 4 + 32 + 2, 4 * 27 + 32 + 4 * (4 + 2))


@pytest.mark.parametrize(("bits", "qconfig"), [(8, "qconfig"), (4, "qconfig_4bit")])
def test_an_embedding_of_half_bytes(bits: int, qconfig: str) -> None:
    table = nn.Sequential(nn.Embedding(10, 8))
    table.get_submodule("0").qconfig = getattr(ao, f"float_qparams_weight_only_{qconfig}")
    assert weights(converted(table, None)) == (80, 80 * bits // 8)


def test_torchscript_has_the_same_frozen_or_not() -> None:
    scripted = torch.jit.script(dynamic(linear(), nn.Linear).eval())
    assert weights(scripted) == LINEAR
    assert weights(torch.jit.freeze(scripted)) == LINEAR
    assert weights(torch.jit.freeze(torch.jit.script(linear()))) == (LINEAR.number, 4 * LINEAR.number)


def test_what_cannot_be_read_is_no_number_and_has_its_class() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model.get_submodule("1").packed = torch.classes.profiling._ScriptProfile()
    reader = WeightReader()
    assert reader.weights(model) is None and reader.weights(model.get_submodule("0")) == (6, 24)
    assert reader.unreadable(model) == ["profiling._ScriptProfile"]


class Tensors(nn.Module):
    """A layer without parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.ones(4, 8, dtype=torch.int8))
        self.register_buffer("scales", torch.ones(4))
        self.other = torch.ones(4, 4)


def test_matrices_that_are_no_parameters_are_weights_of_a_layer_that_multiplies() -> None:
    layer, reader = Tensors(), WeightReader()
    model = nn.Sequential(layer, nn.Linear(4, 2, bias=False))
    assert reader.weights(model) == (8, 32)
    reader.take_tensors(layer)
    assert reader.weights(layer) == (32 + 16, 32 + 4 * 16)
    assert reader.weights(model) == (32 + 16 + 8, 32 + 4 * 16 + 32)


def test_a_layer_with_a_matrix_of_its_own_has_no_other_weights() -> None:
    """A mask or a table of positions is none."""
    layer, reader = nn.Linear(4, 2, bias=False), WeightReader()
    layer.register_buffer("mask", torch.ones(64, 64))
    reader.take_tensors(layer)
    assert reader.weights(layer) == (8, 32)


class Wrapped:
    """As subclasses of tensors say what they consist of."""

    def __init__(self) -> None:
        self.data, self.scale = torch.ones(4, 4, dtype=torch.int8), torch.ones(4)

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["data", "scale"], None


def test_a_tensor_made_of_others_has_their_size() -> None:
    made: Any = Wrapped()
    assert size_bytes(made) == 16 + 4 * 4
