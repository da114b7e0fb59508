"""What stands in a model's place and has a runtime do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hwprof.errors import HwprofError
from hwprof.workload.changes import RUNTIMES, of_built
from hwprof.workload.module_call import is_compiled, stand_in_of
from hwprof.workload.runtimes import stand_in
from hwprof.workload.runtimes.exported import Exported
from hwprof.workload.runtimes.flat_call import Structure, flatten
from hwprof.workload.runtimes.operators import Graph
from hwprof.workload.runtimes.runtime import Profile


class Session:
    def __init__(self, name: str, done: list[str], *, outputs: int = 1) -> None:
        self._name, self._done, self._outputs = name, done, outputs

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        self._done.append(self._name)
        return [tensors[0] + 1] * self._outputs

    def profile(self) -> Profile:
        if self._name == "broken":
            raise HwprofError("the disk was full")
        return Profile((), notes=[self._name])


class Runtime:
    """Adds 1, and says which of its sessions did."""

    name = "made up"

    def __init__(self, watched: str = "watched", outputs: int = 1) -> None:
        self.done: list[str] = []
        self._watched, self._outputs = watched, outputs

    def session(self, model: Exported) -> Session:
        self.done.append("loaded")
        return Session("plain", self.done, outputs=self._outputs)

    def watched(self, model: Exported) -> Session:
        self.done.append("loaded to be watched")
        return Session(self._watched, self.done)


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was exported: the forward that the model had then."""
    found: list[Any] = []

    @contextmanager
    def exported(model: nn.Module, call: Any) -> Iterator[Exported]:
        found.append(model.__dict__.get("forward"))
        structure = Structure(*flatten((torch.zeros(1),), {}))
        yield Exported(Path(), Graph([], frozenset(), {}), structure)

    monkeypatch.setattr(stand_in, "exported", exported)
    return found


def test_a_model_is_loaded_once_for_each_kind_of_call_and_watched_only_if_asked(exports: list[Any]) -> None:
    runtime, model = Runtime(), nn.ReLU()
    found = stand_in.StandIn(model, runtime)
    found.can_be_watched = True
    placed = model.__dict__["forward"] = lambda x: found.run(x)
    model(torch.zeros(2))
    found.watch()
    model(torch.zeros(2))
    found.rest()
    model(torch.zeros(3))
    assert runtime.done == [*(loaded := ["loaded to be watched", "loaded"]), "plain", "watched", *loaded, "plain"]
    assert exports == [None, None] and model.__dict__["forward"] is placed
    assert [note for profile in found.profiles() for note in profile.notes] == ["watched", "watched"]


def test_what_nobody_will_watch_is_loaded_once(exports: list[Any]) -> None:
    runtime = Runtime()
    found = stand_in.StandIn(nn.ReLU(), runtime)
    found.watch()
    found.run(torch.zeros(2))
    assert runtime.done == ["loaded", "plain"] and found.profiles() == []


def test_a_profile_that_is_lost_costs_its_layers(exports: list[Any]) -> None:
    found = stand_in.StandIn(nn.ReLU(), Runtime("broken"))
    found.can_be_watched = True
    found.run(torch.zeros(2))
    (profile,) = found.profiles()
    assert list(profile.calls) == [] and profile.notes == ["layers not available: the disk was full"]


def test_another_number_of_outputs_than_the_models_is_no_result(exports: list[Any]) -> None:
    with pytest.raises(HwprofError, match="2 tensors come out of the exported model instead of 1"):
        stand_in.StandIn(nn.ReLU(), Runtime(outputs=2)).run(torch.zeros(2))


@pytest.mark.parametrize("name", RUNTIMES)
def test_it_is_taken_back(name: str) -> None:
    model = nn.Sequential(nn.ReLU())
    take_back = of_built([model], [name])
    assert isinstance(stand_in_of(model), stand_in.StandIn) and not is_compiled(model)
    take_back()
    assert stand_in_of(model) is None and "forward" not in model.__dict__
