"""A model whose memory was given back."""

from __future__ import annotations

import torch
from torch import nn

from hwprof.workload.giving_back import give_back


class _Strange(nn.Parameter):
    """Whoever looks at it runs its code."""

    @classmethod
    def __torch_function__(cls, *_: object, **__: object) -> object:
        raise AssertionError


class _Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(300, 300)
        self.again = self.shared
        self.register_parameter("none", None)

        strange = torch.Tensor._make_subclass(_Strange, torch.zeros(3))
        self._parameters["strange"] = strange

    def named_modules(self, *_: object, **__: object) -> object:
        raise AssertionError

    def named_parameters(self, *_: object, **__: object) -> object:  # type: ignore[override]
        raise AssertionError


def test_parameters_have_no_numbers_and_no_code_of_the_users_runs() -> None:
    model = _Own()
    before = model.shared.weight
    give_back([model, model.shared])
    assert before.numel() == 0 and model.shared.bias.numel() == 0


def test_what_cannot_be_changed_stays_and_stops_nothing() -> None:
    model = nn.Linear(3, 3)
    model.register_parameter("sparse", nn.Parameter(torch.eye(3).to_sparse()))
    give_back([model])
    sparse = model.get_parameter("sparse")
    assert sparse.numel() == 9 and model.weight.numel() == 0


def test_parameters_of_inference_mode_are_given_back_too() -> None:
    with torch.inference_mode():
        model = nn.Linear(3, 3)
    give_back([model])
    assert model.weight.numel() == 0
