"""Which of torch's messages speak of the mode that models are called in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from hwprof.workload.inference_mode import TO_COPY, TO_RECORD, unable

WEIGHT = nn.Parameter(torch.ones(3))


def loss(factor: torch.Tensor | int = 2) -> Any:
    """Without a type: torch gives none to what is called on it."""
    return (WEIGHT * factor).sum()


def outside(code: Callable[[torch.Tensor], object]) -> None:
    made_within = torch.ones(3) * 2
    with torch.inference_mode(False):
        code(made_within)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (lambda: loss().backward(), TO_RECORD),
        (lambda: torch.autograd.grad(loss(), WEIGHT), TO_RECORD),
        (lambda: loss().retain_grad(), TO_RECORD),
        (lambda: loss().register_hook(print), TO_RECORD),
        (lambda: outside(lambda tensor: loss(tensor).backward()), TO_COPY),
        (lambda: outside(lambda tensor: tensor.add_(1)), TO_COPY),
        (lambda: outside(lambda tensor: tensor.requires_grad_()), TO_COPY),
        (lambda: loss()._version, TO_COPY),
    ],
)
def test_messages_of_the_mode_are_known(code: Callable[[], object], remedy: str) -> None:
    with torch.inference_mode(), pytest.raises(RuntimeError) as raised:
        code()
    error = unable("net", raised.value)
    assert error is not None and error.remedy == remedy and error.exit_code == 1
    assert error.message.startswith("net fails in torch.inference_mode")


def test_an_error_that_wraps_one_of_them_is_one_too() -> None:
    with pytest.raises(ValueError) as raised, torch.inference_mode():
        try:
            loss().backward()
        except RuntimeError as error:
            raise ValueError("no loss") from error
    assert unable("net", raised.value) is not None


def test_other_messages_are_none_of_the_modes() -> None:
    with torch.inference_mode(), pytest.raises(RuntimeError) as raised:
        nn.Linear(2, 3)(torch.ones(4, 5))
    assert unable("net", raised.value) is None
