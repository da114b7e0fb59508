from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from hwprof.errors import HwprofError
from hwprof.workload.shared_weights import SharedWeights


def _module(seed: int, width: int = 4) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.Linear(width, 2, bias=False)).requires_grad_(
        False
    )


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        yield file.fileno()


def _save(descriptor: int, module: nn.Module, checksum: str = "c0ffee00") -> None:
    shared = SharedWeights(descriptor)
    shared.save(module)
    shared.confirm(checksum, fused=True)


def test_what_one_pass_saves_the_next_one_loads_bit_by_bit_into_the_same_memory(descriptor: int) -> None:
    first, second = _module(0), _module(1)
    assert not SharedWeights(descriptor).available
    _save(descriptor, first)
    addresses = [parameter.data_ptr() for parameter in second.parameters()]
    shared = SharedWeights(descriptor)
    assert shared.available
    shared.load(second)
    shared.confirm("c0ffee00", fused=True)
    assert [parameter.data_ptr() for parameter in second.parameters()] == addresses
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name])


def test_other_weights_than_the_first_pass_had_are_refused(descriptor: int) -> None:
    _save(descriptor, _module(0))
    shared = SharedWeights(descriptor)
    shared.load(_module(1))
    with pytest.raises(HwprofError, match="c0ffee00"):
        shared.confirm("deadbeef", fused=True)


def test_of_a_model_that_is_not_fused_nothing_is_compared(descriptor: int) -> None:
    _save(descriptor, _module(0))
    shared = SharedWeights(descriptor)
    shared.load(_module(1))
    shared.confirm("deadbeef", fused=False)  # raises nothing
    with pytest.raises(HwprofError, match="c0ffee00"):
        shared.confirm("deadbeef", fused=True)


def test_weights_of_another_structure_are_refused(descriptor: int) -> None:
    _save(descriptor, _module(0))
    with pytest.raises(HwprofError, match="another model"):
        SharedWeights(descriptor).load(_module(0, width=5))


def test_weights_that_were_never_confirmed_are_not_there(descriptor: int) -> None:
    """The pass that saved died before it was ready."""
    SharedWeights(descriptor).save(_module(0))
    assert not SharedWeights(descriptor).available


def test_a_file_cut_short_is_refused(descriptor: int) -> None:
    _save(descriptor, _module(0))
    os.ftruncate(descriptor, os.fstat(descriptor).st_size - 8)
    with pytest.raises(HwprofError, match="cut short"):
        SharedWeights(descriptor).load(_module(0))


def test_a_full_disk_leaves_no_weights() -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full:
        shared = SharedWeights(full.fileno())
        shared.save(_module(0))  # raises nothing
        shared.confirm("c0ffee00", fused=True)
        assert not SharedWeights(full.fileno()).available
