"""What two passes must have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hwprof.run.manifest import WorkloadRecord
from hwprof.workload.fingerprint import fingerprint
from hwprof.workload.protocol import Call, Outputs, Stages


class Work:
    """A model with one input, or a dictionary of them."""

    def __init__(self, seed: int = 0, value: float = 1.0, nested: bool = False) -> None:
        torch.manual_seed(seed)
        self.modules: Mapping[str, nn.Module] = {"": nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))}
        tensor = torch.full((1, 4), value)
        self._arguments: tuple[Any, ...] = ({"pair": [tensor, (tensor,)]},) if nested else (tensor,)

    shapes_suffice = False

    def prepare(self, *, values: bool = True) -> WorkloadRecord:
        raise AssertionError("it is prepared")

    def iterate(self, stages: Stages, save_to: Path | None, outputs: Outputs | None = None) -> None:
        raise AssertionError("nothing is executed")

    def forwards(self) -> list[Call]:
        return [Call(self.modules[""], self._arguments)]

    def results(self) -> list[str]:
        return []

    def boxes(self) -> list[torch.Tensor] | None:
        return None


def differs(one: Work, other: Work) -> set[str]:
    first, second = fingerprint(one), fingerprint(other)
    return {name for name in first if first[name] != second[name]}


def test_the_same_work_is_the_same() -> None:
    assert differs(Work(), Work()) == set()


def test_weights_buffers_and_inputs_count() -> None:
    assert differs(Work(), Work(seed=1)) == {"weights"}
    assert differs(Work(), Work(value=1.5)) == {"inputs"}
    moved = Work()
    moved.modules[""][1].running_mean.fill_(0.25)  # type: ignore[index]
    assert differs(Work(), moved) == {"weights"}


def test_inputs_are_found_wherever_they_are() -> None:
    assert differs(Work(nested=True), Work(nested=True, value=2.0)) == {"inputs"}


def test_what_libraries_choose_kernels_by_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(Work())
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    after = fingerprint(Work())
    assert {name for name in before if before[name] != after[name]} == {"instruction set"}
    assert "ONEDNN_MAX_CPU_ISA=SSE41" in after["instruction set"]


def test_tensors_that_do_not_show_their_contents_count_by_shape() -> None:
    work = Work()
    work.modules[""].register_buffer("sparse", torch.eye(3).to_sparse())
    work.modules[""].register_buffer("nowhere", torch.empty(3, device="meta"))
    assert differs(Work(), work) == {"weights"}
    assert fingerprint(work) == fingerprint(work)


def test_of_an_input_that_repeats_itself_the_repeated_part_counts() -> None:
    small, large = Work(), Work()
    small._arguments, large._arguments = ((torch.full((1,), value).expand(1 << 40),) for value in (1.0, 2.0))
    assert differs(small, large) == {"inputs"}
