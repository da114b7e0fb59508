"""What remedies change in a model, in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch


class Own(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.second(self.first(x))
        return found


@pytest.mark.parametrize("make", [Own, lambda: torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())])
def test_what_is_compiled_is_compiled_in_classes_of_torchs_own_too(
    make: Callable[[], torch.nn.Module],
) -> None:
    """``nn.Sequential.compile`` compiles nothing, and says nothing of it."""
    from torch._dynamo.utils import counters
    from torch._inductor import config

    from hwprof.workload.changes import AFTER

    torch._dynamo.reset()
    counters.clear()
    model, x = make().eval(), torch.rand(4, 8)
    before = config.freezing
    try:
        with torch.inference_mode():
            expected = model(x)
            AFTER["compile"](model)
            found = model(x)
    finally:
        config.freezing = before
        torch._dynamo.reset()
    assert counters["frames"]["ok"] >= 1 and counters["inductor"]
    assert torch.allclose(found, expected, atol=1e-5)
