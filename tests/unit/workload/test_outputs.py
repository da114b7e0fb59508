"""Checksums of outputs: what changes them, and what does not."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from hwprof.workload import outputs
from hwprof.workload.outputs import Outputs, checksum

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@dataclass
class Boxes:
    corners: torch.Tensor
    name: str = "boxes"


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


Pair = namedtuple("Pair", "first second")


class Broken(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("not now")


def line() -> torch.Tensor:
    return torch.arange(12, dtype=torch.float32)


def not_a_number(bits: int) -> torch.Tensor:
    return torch.tensor([bits], dtype=torch.int32).view(torch.float32)


def quantized(scale: float) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(3), scale, 0, torch.qint8)


def channels(scale: float) -> torch.Tensor:
    scales = torch.tensor([1.0, scale])
    return torch.quantize_per_channel(torch.ones(2, 3), scales, torch.zeros(2), 0, torch.qint8)


def nested(value: float) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.full((3,), value)])


def cycle(value: int) -> list[Any]:
    within: list[Any] = [value]
    within.append(within)
    return within


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "one bit": (line(), torch.cat([line()[:-1], torch.nextafter(line()[-1:], torch.tensor(12.0))])),
    "shape": (line(), line().reshape(3, 4)),
    "type": (torch.zeros(4), torch.zeros(4, dtype=torch.int32)),
    "zeros": (torch.zeros(1), -torch.zeros(1)),
    "number and tensor": (1.0, torch.tensor(1.0)),
    "number's type": (1, 1.0),
    "truth": (1, True),
    "nothing": (None, ()),
    "nesting": ([1, [2, 3]], [[1, 2], 3]),
    "order": ([1, 2], [2, 1]),
    "kind of sequence": ((1, 2), [1, 2]),
    "key": ({"a": 1}, {"b": 1}),
    "text": ("ab", "ba"),
    "joined text": (["ab", "c"], ["a", "bc"]),
    "deep": ({"a": [(line(), {"b": line()})]}, {"a": [(line(), {"b": line() + 1})]}),
    "object": (Boxes(line()), Boxes(line() + 1)),
    "object's text": (Boxes(line()), Boxes(line(), "others")),
    "slots": (Slotted(1), Slotted(2)),
    "named": (Pair(1, line()), Pair(1, -line())),
    "array": (np.arange(3), np.arange(3) + 1),
    "array's type": (np.arange(3), np.arange(3, dtype=np.int32)),
    "array of objects": (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
    "array's number": (np.float32(1.5), np.float32(2.5)),
    "complex": (torch.tensor([1 + 1j]), torch.tensor([1 + 1j]).conj()),
    "sparse": (torch.eye(3).to_sparse(), (2 * torch.eye(3)).to_sparse()),
    "rows": (torch.eye(3).to_sparse_csr(), (2 * torch.eye(3)).to_sparse_csr()),
    "quantized": (quantized(0.5), quantized(0.25)),
    "quantized by channel": (channels(0.5), channels(0.25)),
    "nested tensor": (nested(1.0), nested(2.0)),
    "bfloat16": (torch.ones(3, dtype=torch.bfloat16), torch.zeros(3, dtype=torch.bfloat16)),
    "bool": (torch.tensor([True]), torch.tensor([False])),
    "set": ({1, 2}, {1, 3}),
    "view": (torch.ones(4, 4).t(), torch.arange(16.0).reshape(4, 4).t()),
    "mkldnn": (torch.ones(2, 2).to_mkldnn(), torch.zeros(2, 2).to_mkldnn()),
    "cycle": (cycle(1), cycle(2)),
    "NaN's bits": (not_a_number(0x7FC00000), not_a_number(0x7FC00001)),
}


@pytest.mark.parametrize("what", list(DIFFERENT))
def test_what_differs_has_another_checksum(what: str) -> None:
    one, other = DIFFERENT[what]
    assert checksum(one) == checksum(one)
    assert checksum(one) != checksum(other)


def iterator() -> Iterator[int]:
    yield from ()


SAME: dict[str, Callable[[], Any]] = {
    "not a number": lambda: [float("nan"), torch.tensor([float("nan"), -float("nan")]), np.array([np.nan])],
    "functions": lambda: [lambda: None, iterator(), torch.nn.Linear(1, 1), object(), Slotted],
    "strides": lambda: torch.arange(12.0).reshape(4, 3),
    "empty": lambda: [torch.empty(0), torch.empty(3, 0), [], {}, None],
    "made up": lambda: torch.empty(3, device="meta"),
    "learning": lambda: torch.ones(3, requires_grad=True) * 2,
    "sets": lambda: {"b", "a", (1, 2)},
    "broken": lambda: Broken(a=1),
    "inference": lambda: torch.inference_mode()(lambda: torch.ones(3) * 2)(),
    "ordered": lambda: OrderedDict(a=torch.ones(1)),
}


@pytest.mark.parametrize("what", list(SAME))
def test_what_is_the_same_has_the_same(what: str) -> None:
    assert checksum(SAME[what]()) == checksum(SAME[what]())


def test_how_a_tensor_lies_in_memory_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is not in one piece is not copied as a whole."""
    monkeypatch.setattr(outputs, "PART_BYTES", 256)
    tensor = torch.arange(40 * 30, dtype=torch.float32).reshape(40, 30)
    turned = tensor.t().contiguous().t()
    assert not turned.is_contiguous()
    assert checksum(tensor) == checksum(turned)
    assert checksum(tensor[None]) == checksum(turned[None])


def test_another_process_comes_to_the_same() -> None:
    """Nothing hangs on addresses, or on how strings are hashed here."""
    code = "from tests.unit.workload.test_outputs import *; print([checksum(make()) for make in SAME.values()])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str([checksum(make()) for make in SAME.values()])


def test_all_outputs_of_an_iteration_count() -> None:
    one, two, other = (Outputs(timed=False) for _ in range(3))
    for found, values in ((one, (1.0,)), (two, (1.0, 2.0)), (other, (2.0, 1.0))):
        for value in values:
            found.add(torch.full((3,), value))
    assert len({found.checksum() for found in (one, two, other, Outputs(timed=False))}) == 4
    timed = Outputs(timed=True)
    timed.add(torch.full((3,), 1.0))
    again = Outputs(timed=False)
    again.add(torch.full((3,), 1.0))
    assert timed.checksum() == again.checksum()


@pytest.mark.parametrize("timed", [True, False])
def test_the_last_output_is_held_and_added_up_when_all_is_over(timed: bool) -> None:
    """However large it is: this one says when it is looked at."""
    looks: list[str] = []

    class Large(dict[str, torch.Tensor]):
        def items(self) -> Any:
            looks.append("added up")
            return super().items()

    found = Outputs(timed=timed)
    output = Large(large=torch.empty(1 << 28, device="meta"))
    given = weakref.ref(output)
    found.add(output)
    del output
    assert given() is not None and looks == []
    assert found.checksum() is not None and looks == ["added up"]
    del found
    assert given() is None


def test_of_several_one_is_held_and_none_added_up_in_an_iteration_that_is_timed() -> None:
    outputs = [torch.full((3,), float(value)) for value in range(4)]
    for timed in (True, False):
        found = Outputs(timed=timed)
        alive = []
        for output in outputs:
            copy = output.clone()
            alive.append(weakref.ref(copy))
            found.add(copy)
            del copy
        assert [ref() is not None for ref in alive] == [False, False, False, True]
        assert (found.checksum() is None) is timed
