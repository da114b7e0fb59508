"""Weights that are no numbers."""

from __future__ import annotations

import math

import torch
from torch import nn

from hwprof.workload import not_finite


def net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))


def test_of_numbers_nothing_is_said() -> None:
    assert not_finite.told(net()) is None


def test_a_sum_that_overflows_is_none_of_a_tensor_that_does() -> None:
    model = net().half()
    for parameter in model.parameters():
        nn.init.constant_(parameter, 60_000)
    assert not_finite.told(model) is None


def test_tensors_with_nan_or_infinities_are_counted_and_counters_are_not_among_them() -> None:
    model = net()
    for name, value in (("0.weight", math.nan), ("1.running_var", math.inf)):
        model.state_dict()[name].view(-1)[-1] = value
    assert str(not_finite.told(model)).startswith("2 of 6 tensors of the weights hold NaN or infinities")


def test_what_has_no_numbers_is_not_asked() -> None:
    class Odd(nn.Module):
        def get_extra_state(self) -> dict[str, int]:
            return {"packed": 1}

        def set_extra_state(self, state: dict[str, int]) -> None: ...

    model = nn.Sequential(Odd(), nn.Linear(2, 2, device="meta"))
    model.register_buffer("eighth", torch.full((2, 2), math.nan).to(torch.float8_e4m3fn))
    model.register_buffer("sparse", torch.full((2, 2), math.nan).to_sparse())
    assert not_finite.told(model) is None
