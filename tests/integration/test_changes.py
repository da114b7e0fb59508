"""What remedies change in a model, in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from hwprof.session.trials.generation import left_in


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


def test_what_torch_keeps_of_its_compiler_stays_in_the_trials_folder(tmp_path: Path) -> None:
    """The campaign of faults found the compiled headers (and their lock) in the user's folder for temporary files,
    whatever TORCHINDUCTOR_CACHE_DIR says."""
    told = "from torch._inductor import codecache; print(codecache._HEADER_DIR); print(codecache.cache_dir())"
    printed = subprocess.run(
        [sys.executable, "-c", told], env=os.environ | left_in(tmp_path), capture_output=True, text=True, check=True
    )
    folders = [Path(line) for line in printed.stdout.splitlines()]
    assert len(folders) == 2 and all(folder.is_relative_to(tmp_path) for folder in folders)
