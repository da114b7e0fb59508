"""The forwards that ``hwprof layers`` times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
import torch
from torch import nn

from hwprof.run.manifest import WorkloadRecord
from hwprof.session import layer_times
from hwprof.session.copy_of_process import HowFar
from hwprof.session.layer_times import LayerTimes
from hwprof.session.messages import Phase, PhaseBegins, Step
from hwprof.session.plan import FEWEST
from hwprof.workload.protocol import Call, Outputs, Stages


class Counting(nn.Module):
    """``fails_at``: the number of the call that raises."""

    def __init__(self, fails_at: int | None = None) -> None:
        super().__init__()
        self.inner, self.calls, self.modes, self._fails_at = nn.Linear(3, 2), 0, set[bool](), fails_at

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.modes.add(torch.is_inference_mode_enabled())
        if self.calls == self._fails_at:
            raise ValueError("out of order")
        found: torch.Tensor = self.inner(x)
        return found


class TwoInputs:
    """A workload whose second input the model cannot take."""

    shapes_suffice = False

    def __init__(self, module: nn.Module) -> None:
        self.modules: Mapping[str, nn.Module] = {"": module}

    def prepare(self, *, values: bool = True) -> WorkloadRecord:
        raise NotImplementedError

    def iterate(self, stages: Stages, save_to: Path | None, outputs: Outputs | None = None) -> None:
        raise NotImplementedError

    def forwards(self) -> list[Call]:
        return [Call(self.modules[""], (torch.zeros(1, width),)) for width in (3, 4)]

    def results(self) -> list[str]:
        return []

    def boxes(self) -> list[torch.Tensor] | None:
        return None


def measured(module: nn.Module, runs: int) -> tuple[LayerTimes, list[HowFar]]:
    said: list[HowFar] = []
    times = LayerTimes(TwoInputs(module))
    assert times.measure(runs, said.append) == []
    return times, said


@pytest.mark.parametrize(("runs", "bare"), [(1, 0), (9, 0), (10, 2)])
def test_so_many_forwards_of_the_first_input_are_timed_after_the_warm_up(runs: int, bare: int) -> None:
    module = Counting()
    times, said = measured(module, runs)
    assert module.calls == layer_times.WARMUP + runs + bare and module.modes == {True}
    assert said == [
        PhaseBegins(Phase.WARMING_UP, layer_times.WARMUP),
        *layer_times.WARMUP * [Step()],
        PhaseBegins(Phase.MEASURING, runs),
        *runs * [Step()],
    ]
    kinds = [(one.warmup, one.bare) for one in times.record.iterations]
    assert kinds.count((False, False)) == runs and kinds.count((True, True)) == bare
    assert all(one.disturbance is not None for one in times.record.iterations)
    spans = times.recorder.table(1)
    watched = [one.index for one in times.record.iterations if not one.bare]
    assert spans.filter(path="inner")["iteration"].to_list() == watched
    assert spans.filter(path="inference").height == len(times.record.iterations)


def test_a_slow_model_has_fewer_runs_and_not_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_times, "LIMIT_S", 0.0)
    times, _ = measured(Counting(), 100)
    assert [one.warmup for one in times.record.iterations if not one.bare].count(False) == FEWEST


def test_what_the_model_raises_is_raised_and_its_modules_are_as_they_were() -> None:
    module = Counting(fails_at=4)
    with pytest.raises(ValueError, match="out of order"):
        LayerTimes(TwoInputs(module)).measure(3, lambda _: None)
    assert "forward" not in module.__dict__ and "forward" not in module.inner.__dict__


def test_a_module_that_the_model_replaces_is_told() -> None:
    class Replacing(Counting):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.inner = nn.Linear(3, 2)
            return super().forward(x)

    module = Replacing()
    times = LayerTimes(TwoInputs(module))
    assert times.measure(1, lambda _: None) == ["inner"]
    assert times.recorder.table(1).filter(pl.col("path") == "inner").is_empty()
