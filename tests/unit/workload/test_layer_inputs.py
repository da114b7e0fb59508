"""What layers can be called with."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hwprof.workload.layer_inputs import taken
from hwprof.workload.model_inputs import drawn
from hwprof.workload.spec import InputSpec

SMALL = (2, 9)


@pytest.mark.parametrize(
    ("layer", "given", "spec"),
    [
        (nn.Embedding(50, 4), (), InputSpec(shape=(1, 128), dtype="int64", range=(0, 49))),
        (nn.Embedding(50, 4), SMALL, InputSpec(shape=SMALL, dtype="int64", range=(0, 49))),
        (nn.Embedding(50, 4), (1, 3, 8, 8), InputSpec(shape=(1, 128), dtype="int64", range=(0, 49))),
        (nn.EmbeddingBag(50, 4), SMALL, InputSpec(shape=SMALL, dtype="int64", range=(0, 49))),
        (nn.Linear(7, 4), (), InputSpec(shape=(1, 7))),
        (nn.Linear(7, 4), (2, 3, 9), InputSpec(shape=(2, 3, 7))),
        (nn.Linear(7, 4).bfloat16(), SMALL, InputSpec(shape=(2, 7), dtype="bfloat16")),
        (nn.LSTM(7, 4), (), InputSpec(shape=(1, 16, 7))),
        (nn.LSTM(7, 4), (2, 3, 9), InputSpec(shape=(2, 3, 7))),
        (nn.GRU(7, 4), (1, 3, 8, 8), InputSpec(shape=(1, 16, 7))),
        (nn.GRUCell(7, 4), SMALL, InputSpec(shape=(2, 7))),
        (nn.Conv1d(5, 4, 3), (), InputSpec(shape=(1, 5, 1024))),
        (nn.Conv2d(5, 4, 3), (2, 3, 20, 30), InputSpec(shape=(2, 5, 20, 30))),
        (nn.Conv2d(5, 4, 3), SMALL, InputSpec(shape=(1, 5, 224, 224))),
        (nn.Conv3d(5, 4, 3), (2, 3, 4, 5, 6), InputSpec(shape=(2, 5, 4, 5, 6))),
        (nn.ConvTranspose2d(5, 4, 3), (), InputSpec(shape=(1, 5, 16, 16))),
        (nn.BatchNorm2d(5).eval(), (), InputSpec(shape=(1, 5, 224, 224))),
    ],
)
def test_a_layer_takes_what_its_sizes_say(layer: nn.Module, given: tuple[int, ...], spec: InputSpec) -> None:
    assert taken(layer, given) == spec
    (arguments, _) = drawn([spec], 0)
    with torch.inference_mode():
        layer(*arguments)


@pytest.mark.parametrize("layer", [nn.ReLU(), nn.Sequential(nn.Linear(2, 3)), nn.LazyLinear(3)])
def test_others_do_not_tell(layer: nn.Module) -> None:
    assert taken(layer) is None
