"""Whatever a model does when it is called once more, what was measured of it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import nn

from hwprof.interrupts import Interrupt
from hwprof.run.manifest import WorkloadRecord
from hwprof.session.description import describe
from hwprof.workload.layer_tables import OF_A_CALL
from hwprof.workload.protocol import Call, Outputs, Stages


class Cached(nn.Module):
    """Keeps what it computed and adds to it in place, as caches of keys and values do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv2d(3, 4, 3)
        self.kept: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x)
        self.kept = torch.zeros_like(y) if self.kept is None else self.kept
        return self.kept.add_(y)


class Failing(nn.Module):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.inner, self._error = nn.Linear(3, 2), error

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner(x)
        raise self._error


class Once:
    """A workload that is one call of a module."""

    shapes_suffice = False

    def __init__(self, module: nn.Module, x: torch.Tensor) -> None:
        self.modules: Mapping[str, nn.Module] = {"": module}
        self._call = Call(module, (x,))

    def prepare(self, *, values: bool = True) -> WorkloadRecord:
        raise NotImplementedError

    def iterate(self, stages: Stages, save_to: Path | None, outputs: Outputs | None = None) -> None:
        raise NotImplementedError

    def forwards(self) -> list[Call]:
        return [self._call]

    def results(self) -> list[str]:
        return []

    def boxes(self) -> list[torch.Tensor] | None:
        return None


def test_a_model_with_state_is_called_as_it_was_measured() -> None:
    model, x = Cached(), torch.zeros(1, 3, 8, 8)
    with torch.inference_mode():
        model(x)
    tables, notes = describe(Once(model, x))
    assert notes == []
    assert tables["layers"].filter("leaf").select("path", "macs", "calls").rows() == [("inner", 4 * 36 * 27, 1)]


def test_what_torch_composes_has_the_same_macs_as_outside_of_inference_mode() -> None:
    """There an operator comes whole: ``linear``, not the product that it is made of."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2), nn.Linear(36, 5), nn.Conv1d(4, 2, 3))
    tables, _ = describe(Once(model, torch.zeros(1, 3, 8, 8)))
    assert dict(tables["layers"].filter("leaf").select("path", "macs").iter_rows()) == {
        "0": 4 * 36 * 27, "1": 0, "2": 4 * 36 * 5, "3": 2 * 3 * 12,
    }  # fmt: skip


@pytest.mark.parametrize("error", [RuntimeError("out of data"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_one_that_fails_then_has_its_layers_without_figures(error: BaseException) -> None:
    tables, (note,) = describe(Once(Failing(error), torch.zeros(1, 3)))
    assert type(error).__name__ in note
    assert tables["layers"].select("path", "leaf", "parameters").rows() == [("", False, 8), ("inner", True, 8)]
    assert all(tables["layers"][name].to_list() == [None, None] for name in OF_A_CALL)
    assert tables["layer_calls"].is_empty()


def test_where_the_user_does_not_want_to_wait_nothing_is_called_that_takes_its_time() -> None:
    tables, (note,) = describe(Once(Failing(RuntimeError("called")), torch.zeros(1, 3)), lambda: True)
    assert note == "MACs, bytes and shapes not available: interrupted before one more call of the model"
    assert tables["layers"].select("path", "parameters", "macs").rows() == [("", 8, None), ("inner", 8, None)]
    quick = Once(nn.Sequential(nn.Linear(3, 2)), torch.zeros(1, 3))
    quick.shapes_suffice = True  # nothing is computed
    tables, (note,) = describe(quick, lambda: True)
    assert note == "denormal numbers are not counted: interrupted before one more call of the model"
    assert tables["layers"].filter("leaf").select("path", "macs", "denormal_share").rows() == [("0", 6, None)]


def test_the_users_ctrl_c_is_no_failure_of_the_model() -> None:
    with pytest.raises(Interrupt):
        describe(Once(Failing(Interrupt()), torch.zeros(1, 3)))


def test_of_what_is_called_in_another_order_only_what_is_called_once_has_its_calls() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.once, self.twice = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.twice(self.twice(self.once(x)))
            return found

    tables, _ = describe(Once(Twice(), torch.zeros(1, 3)), in_any_order=True)
    assert sorted(tables["layer_calls"]["path"]) == ["", "once"]
    assert dict(tables["layers"].select("path", "calls").iter_rows()) == {"": 1, "once": 1, "twice": 2}
    assert tables["layers"].filter("compiled")["path"].to_list() == [""]
