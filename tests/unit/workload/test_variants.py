"""What variants change in a model, and how far its outputs are from its own then."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from hwprof.errors import HwprofError
from hwprof.run.manifest import WorkloadRecord
from hwprof.workload.changes import CODE, of_built, of_outputs
from hwprof.workload.module_call import is_compiled
from hwprof.workload.output_differences import difference
from hwprof.workload.protocol import Call, Outputs, Stages
from hwprof.workload.spec import WorkloadSpec
from hwprof.workload.variant import make
from hwprof.workload.variant_outputs import VariantOutputs, matched
from tests.support.requirements import require_module


class Pair(NamedTuple):
    first: torch.Tensor
    rest: dict[str, Any]


class Nested(nn.Module):
    """Gives tensors within a dictionary within a tuple, beside what is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> Pair:
        hidden = self.first(x).relu()
        return Pair(hidden, {"logits": self.second(hidden), "name": "nested", "none": None})


def called(model: nn.Module, x: torch.Tensor) -> Any:
    with torch.inference_mode():
        return model(x)


@pytest.mark.parametrize(("name", "close"), [("torchscript", 1e-6), ("int8", 0.05), ("bfloat16_weights", 0.05)])
def test_outputs_have_the_models_own_structure_and_nearly_its_values(name: str, close: float) -> None:
    model, x = Nested().eval(), torch.rand(3, 8)
    own = called(model, x)
    of_built([model], [name])
    for _ in range(2):
        found = called(model, x)
        assert type(found) is Pair and found.rest["name"] == "nested" and found.rest["none"] is None
        apart = difference([(found.rest["logits"].numpy(), own.rest["logits"].numpy())])
        assert apart.largest <= close and apart.tensors == 1 and not apart.unequal


def test_int8_is_another_layer_and_bfloat16_another_type() -> None:
    model = Nested().eval()
    of_built([model], ["int8"])
    assert "Quantized" in type(model.first).__name__ or "quantized" in type(model.first).__module__
    model = Nested().eval()
    of_built([model], ["bfloat16_weights"])
    assert {one.dtype for one in model.parameters()} == {torch.bfloat16}


def test_a_model_without_linear_layers_is_not_quantised() -> None:
    with pytest.raises(HwprofError, match="no Linear layers"):
        of_built([nn.Sequential(nn.Conv2d(3, 3, 1))], ["int8"])


def test_other_code_is_one_layer_until_it_is_taken_back() -> None:
    model = Nested().eval()
    forward = model.forward
    take_back = of_built([model], ["torchscript"])
    assert is_compiled(model)
    take_back()
    assert not is_compiled(model) and model.forward == forward and "forward" not in vars(model)


def test_each_shape_is_traced_by_itself() -> None:
    class ByShape(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.shape[0]  # a constant of the trace

    model = ByShape().eval()
    of_built([model], ["torchscript"])
    assert called(model, torch.ones(2, 1))[0].item() == 2
    assert called(model, torch.ones(5, 1))[0].item() == 5
    assert called(model, torch.ones(2, 1))[0].item() == 2


def test_inputs_by_name_are_traced_too() -> None:
    class Named(nn.Module):
        def forward(self, x: torch.Tensor, *, scale: torch.Tensor, times: int = 1) -> torch.Tensor:
            return x * scale * times

    model, x = Named().eval(), torch.ones(2)
    of_built([model], ["torchscript"])
    for times in (1, 3, 1):
        with torch.inference_mode():
            assert model(x, scale=2 * x, times=times).tolist() == [2.0 * times] * 2


def test_what_a_trace_freezes_is_told() -> None:
    class ByValue(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(int(x.sum())):
                x = x + 1
            return x if x.sum() > 0 else -x

    workload = Once(ByValue().eval(), torch.ones(2))
    spec = WorkloadSpec(model="x:y", variants=("torchscript",), changes=("torchscript",))
    made = make(workload, spec, compare=True)
    (note,) = made.notes
    assert re.search(r"decides by tensors' values \(test_variants.py:\d+ and 1 more\) is frozen", note)
    plain = make(Once(nn.ReLU().eval(), torch.ones(2)), spec, compare=True)
    assert plain.notes == []


def test_int8_of_an_encoder_that_has_a_fast_path() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 2).eval(), torch.rand(1, 5, 16)
    own = called(model, x)
    try:
        of_built([model], ["int8"])
        found = called(model, x)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert difference([(found.numpy(), own.numpy())]).largest < 0.1


def test_what_cannot_be_traced_says_so_in_one_line() -> None:
    class Untraceable(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("not like\nthis")

    model = Untraceable().eval()
    of_built([model], ["torchscript"])
    with pytest.raises(HwprofError, match=r"cannot be traced: .*not like") as told:
        called(model, torch.ones(1))
    assert "\n" not in told.value.message


def test_every_change_of_code_marks_what_it_puts_there() -> None:
    for name in CODE:
        if name == "compile":  # Dynamo marks its own
            continue
        model = Nested().eval()
        of_built([model], [name])
        assert is_compiled(model), name


def boxes(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(rows).reshape(-1, 6)


BOX = (0.0, 0.0, 10.0, 10.0, 0.9, 1.0)


@pytest.mark.parametrize(
    ("found", "without", "pairs"),
    [
        (boxes(BOX), boxes(BOX), 1),
        (boxes((0.0, 0.0, 10.0, 6.0, 0.9, 1.0)), boxes(BOX), 1),  # 0.6 of it
        (boxes((0.0, 0.0, 10.0, 4.0, 0.9, 1.0)), boxes(BOX), 0),  # 0.4
        (boxes((*BOX[:5], 2.0)), boxes(BOX), 0),  # of another class
        (boxes(BOX, BOX), boxes(BOX), 1),  # two of one
        (boxes(BOX), boxes(BOX, (20.0, 20.0, 30.0, 30.0, 0.5, 1.0)), 1),
        (boxes(), boxes(BOX), 0),
        (boxes(BOX), boxes(), 0),
    ],
)
def test_boxes_are_the_same_by_class_and_overlap(found: torch.Tensor, without: torch.Tensor, pairs: int) -> None:
    require_module("ultralytics")
    told = matched([found], [without])
    assert (told.without, told.found, told.matched) == (len(without), len(found), pairs)


def test_those_that_are_most_sure_choose_first() -> None:
    require_module("ultralytics")
    near, exact = (0.0, 0.0, 10.0, 9.0, 0.3, 1.0), (0.0, 0.0, 10.0, 10.0, 0.8, 1.0)
    told = matched([boxes(near, exact)], [boxes(BOX)])
    assert told.matched == 1


def test_the_mean_difference_is_of_all_elements() -> None:
    one, other = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 2.0])
    found = difference([(one, other), (np.zeros(5), np.zeros(5))])
    assert found.largest == 1.0 and found.mean == pytest.approx(1.0 / 8)
    assert difference([]).mean is None


def test_boxes_without_area_are_the_same_as_themselves() -> None:
    require_module("ultralytics")
    flat = boxes((11.0, 720.0, 514.0, 720.0, 0.6, 2.0))
    told = matched([flat], [flat])
    assert (told.without, told.found, told.matched) == (1, 1, 1)


class Once:
    """A workload of one model and one input, without boxes."""

    shapes_suffice = False

    def __init__(self, model: nn.Module, x: torch.Tensor) -> None:
        self.modules: Mapping[str, nn.Module] = {"": model}
        self._call = Call(model, (x,))

    def prepare(self, *, values: bool = True) -> WorkloadRecord:
        raise NotImplementedError

    def iterate(self, stages: Stages, save_to: Path | None, outputs: Outputs | None = None) -> None:
        with stages("inference"):
            self._call.run()

    def forwards(self) -> list[Call]:
        return [self._call]

    def results(self) -> list[str]:
        return []

    def boxes(self) -> list[torch.Tensor] | None:
        return None


def test_a_model_that_gives_other_outputs_each_time_is_not_compared() -> None:
    class Noisy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.rand(3)

    noisy, plain = Once(Noisy(), torch.ones(3)), Once(nn.ReLU(), torch.ones(3))
    found = VariantOutputs(noisy)
    assert not found.repeatable and found.compared(noisy) == (None, None)
    found = VariantOutputs(plain)
    outputs, others = found.compared(plain)
    assert found.repeatable and outputs is not None and outputs.largest == 0 and others is None


def test_what_is_done_before_the_model_is_built_cannot_be_compared_in_its_process() -> None:
    assert not of_outputs(["flush_denormals"]) and not of_outputs([])
    assert of_outputs(["flush_denormals", "bfloat16"])


@pytest.mark.parametrize(
    ("model", "name", "told"),
    [
        (lambda: nn.Sequential(nn.Conv2d(3, 3, 1)), "int8", "no Linear layers .* Try: another variant: bfloat16"),
        (lambda: nn.Sequential(nn.Linear(3, 3)), "channels_last", "4 or 5 .* Try: another variant: compile"),
        (
            lambda: nn.Sequential(nn.Linear(3, 3)).bfloat16(),
            "int8",
            r"of torch\.bfloat16.* Try: the model in float32",
        ),
    ],
)
def test_a_variant_that_the_model_has_nothing_for_names_another(
    model: Callable[[], nn.Module], name: str, told: str
) -> None:
    with pytest.raises(HwprofError, match=told):
        of_built([model()], [name])
