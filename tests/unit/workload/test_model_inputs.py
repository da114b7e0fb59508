"""What a factory gives behind its model, and inputs that are drawn."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hwprof.workload import model_inputs
from hwprof.workload.spec import FLOATS, InputSpec


class Encoder(nn.Module):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        return input_ids


class OfOneDictionary(nn.Module):
    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return batch["input_ids"]


IDS = torch.zeros(1, 4, dtype=torch.int64)


@pytest.mark.parametrize(
    ("module", "given", "expected"),
    [
        (Encoder(), (IDS,), ((IDS,), {})),
        (Encoder(), ((IDS, IDS),), ((IDS, IDS), {})),
        (Encoder(), ([IDS],), ((IDS,), {})),
        (Encoder(), ({"input_ids": IDS},), ((), {"input_ids": IDS})),
        (Encoder(), (IDS, {"attention_mask": IDS}), ((IDS,), {"attention_mask": IDS})),
        (Encoder(), ((IDS,), {"attention_mask": IDS}), ((IDS,), {"attention_mask": IDS})),
        (Encoder(), ((), {"input_ids": IDS}), ((), {"input_ids": IDS})),
        (OfOneDictionary(), ({"input_ids": IDS},), (({"input_ids": IDS},), {})),
        (OfOneDictionary(), ({"batch": IDS},), ((), {"batch": IDS})),
        (OfOneDictionary(), ({3: IDS},), (({3: IDS},), {})),
    ],
)
def test_what_a_factory_gives(module: nn.Module, given: tuple[Any, ...], expected: Any) -> None:
    assert model_inputs.examples(module, given) == expected


def test_inputs_are_drawn_by_name_and_position_from_the_seed() -> None:
    specs = (
        InputSpec(shape=(2, 3)),
        InputSpec(name="ids", shape=(1, 400), dtype="int64", range=(5, 8)),
        InputSpec(name="mask", shape=(1, 400), dtype="bool"),
        InputSpec(name="scale", shape=(400,), dtype="bfloat16", range=(-2, -1)),
    )
    arguments, keywords = model_inputs.drawn(specs, seed=3)
    assert torch.equal(arguments[0], torch.randn(2, 3, generator=torch.Generator().manual_seed(3)))
    assert {name: tensor.dtype for name, tensor in keywords.items()} == {
        "ids": torch.int64,
        "mask": torch.bool,
        "scale": torch.bfloat16,
    }
    assert keywords["ids"].unique().tolist() == [5, 6, 7, 8], "both ends"
    assert keywords["mask"].unique().tolist() == [False, True]
    assert -2 <= keywords["scale"].min() < keywords["scale"].max() <= -1
    again, other = (model_inputs.drawn(specs, seed=seed)[1]["ids"] for seed in (3, 4))
    assert torch.equal(again, keywords["ids"]) and not torch.equal(other, keywords["ids"])


def test_numbers_without_a_range_are_noted() -> None:
    guessed = InputSpec(name="ids", shape=(1,), dtype="int64")
    (note,) = model_inputs.notes([guessed, InputSpec(shape=(1,)), InputSpec(shape=(1,), dtype="bool")])
    assert note.startswith("ids: ")
    assert model_inputs.drawn([guessed], 0)[1]["ids"].item() in (0, 1)


@pytest.mark.parametrize(("dtype", "largest"), FLOATS.items())
def test_of_the_widest_range_every_number_is_one(dtype: str, largest: float) -> None:
    ends = (-largest / 2, largest / 2)
    ((tensor,), _) = model_inputs.drawn([InputSpec(shape=(1000,), dtype=dtype, range=ends)], seed=0)
    assert tensor.isfinite().all()
    assert tensor.double().min() < ends[0] / 2 and tensor.double().max() > ends[1] / 2
