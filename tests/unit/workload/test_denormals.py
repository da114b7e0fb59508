"""Which layers have denormal numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from torch import nn

from hwprof.run.manifest import WorkloadRecord
from hwprof.workload import denormals
from hwprof.workload.denormals import MOST, denormal_share, denormal_shares
from hwprof.workload.protocol import Call, Outputs, Stages


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_number_is_denormal_below_the_smallest_normal_one(dtype: torch.dtype) -> None:
    smallest = torch.finfo(dtype).smallest_normal
    numbers = torch.tensor([0.0, 1.0, -1.0, smallest, -smallest, smallest / 2, -smallest / 4, 0.0], dtype=dtype)
    assert denormal_share(numbers) == pytest.approx(2 / 8)


@pytest.mark.parametrize(
    "tensor",
    [torch.arange(8), torch.empty(0), torch.full((4,), float("nan")), torch.eye(3).to_sparse(), torch.tensor([True])],
)
def test_what_has_none_has_a_share_of_0(tensor: torch.Tensor) -> None:
    assert denormal_share(tensor) == 0.0


@pytest.mark.parametrize("shape", [(4 * MOST + 3,), (3, MOST), (7, 5, 300, 90)])
def test_of_a_large_tensor_a_part_stands_for_all(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    numbers = torch.where(torch.rand(shape) < 0.25, 1e-40, 1.0)
    assert denormal_share(numbers) == pytest.approx(0.25, abs=0.01)


def test_one_that_repeats_itself_is_looked_at_once() -> None:
    assert denormal_share(torch.full((1,), 1e-40).expand(1 << 40)) == 1.0


def test_a_layers_share_is_the_largest_of_what_it_reads_and_writes() -> None:
    first, last = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
    model = nn.Sequential(first, nn.ReLU(), last)
    with torch.no_grad():
        first.weight.copy_(1e-20 * torch.eye(4))
        last.weight.copy_(1e30 * torch.eye(4))
    found = denormal_shares(Once(model, 1e-20 * torch.ones(1, 4)))
    assert found == {"0": 1.0, "1": 1.0, "2": 1.0}, "the first one's output is the others' input"
    assert denormal_shares(Once(model, torch.ones(1, 4))) == {"0": 0.0, "1": 0.0, "2": 0.0}


class Holds(nn.Module):
    """Has a tensor beside its weights: a buffer, or a plain attribute."""

    def __init__(self, tensor: object, buffer: bool = False) -> None:
        super().__init__()
        if buffer:
            assert isinstance(tensor, torch.Tensor)
            self.register_buffer("held", tensor)
        else:
            self.__dict__["held"] = tensor  # past the checks of ``Module.__setattr__``

    @property
    def computed(self) -> torch.Tensor:
        raise AssertionError("nobody asks for it")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


@pytest.mark.parametrize("buffer", [True, False])
def test_buffers_and_attributes_are_looked_at(buffer: bool) -> None:
    tensor = torch.full((1 << 16,), 1e-40)
    assert denormal_shares(Once(nn.Sequential(Holds(tensor, buffer)), torch.ones(1, 4))) == {"0": 1.0}
    assert denormal_shares(Once(nn.Sequential(Holds(1e30 * tensor, buffer)), torch.ones(1, 4))) == {"0": 0.0}


def test_a_tensor_is_looked_at_once_whatever_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []

    def share(tensor: torch.Tensor) -> float:
        seen.append(tensor)
        return 0.0

    monkeypatch.setattr(denormals, "denormal_share", share)
    x = torch.ones(1, 4)
    layer = Holds(x, buffer=True)
    layer.__dict__["other"] = x
    denormal_shares(Once(nn.Sequential(layer), x))
    assert len(seen) == 1 and seen[0] is x


class Raises(torch.Tensor):
    """A tensor that lets nobody do anything with it."""

    @classmethod
    def __torch_function__(cls, *_: object) -> object:
        raise RuntimeError("hands off")


class Pretends:
    """No tensor, and its class is not to be asked for."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError("hands off")


HOSTILE: dict[str, Callable[[], object]] = {
    "raises": lambda: torch.ones(8).as_subclass(Raises),
    "pretends": Pretends,
    "meta": lambda: torch.empty(1 << 40, device="meta"),
    "huge": lambda: torch.ones(1).expand(1 << 50),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(8), 0.1, 0, torch.qint8),
    "without numbers": lambda: nn.LazyBatchNorm1d().running_mean,
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_cannot_be_looked_at_costs_nothing_but_itself(kind: str) -> None:
    layer = Holds(HOSTILE[kind]())
    layer.__dict__["readable"] = torch.full((8,), 1e-40)
    assert denormal_shares(Once(nn.Sequential(layer), torch.ones(1, 4))) == {"0": 1.0}


def test_the_model_is_as_it_was_also_where_it_fails() -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(RuntimeError):
        denormal_shares(Once(model, torch.ones(1, 3)))
    assert "forward" not in model[0].__dict__


@pytest.mark.parametrize(("step", "share"), [(2, 0.5), (10, 0.1)])
def test_what_repeats_in_steps_is_not_missed(step: int, share: float) -> None:
    tensor = torch.ones(2048, 2048)
    tensor[1::step] = 1e-40
    assert denormal_share(tensor) == pytest.approx(share, abs=0.25 * share + 0.02)
    assert denormal_share(tensor.T) == pytest.approx(share, abs=0.25 * share + 0.02)
