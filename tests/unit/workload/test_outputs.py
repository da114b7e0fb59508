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

from hwprof.workload import checksum as checksums
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


class EndedError(BaseException):
    """As ``SystemExit``, which would end pytest."""


def ended(*_: object) -> Any:
    raise EndedError


class Meta(type):
    __mro__ = property(ended)

    def __getattribute__(cls, name: str) -> Any:
        return ended() if name in ("__qualname__", "__dict__", "__torch_dispatch__") else super().__getattribute__(name)


class Attributes:
    """The base of classes of which nothing may be asked."""

    __class__ = property(ended)
    __getattribute__ = __repr__ = __str__ = __eq__ = __hash__ = ended


class Foreign(Attributes, metaclass=Meta):
    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "value", value)


class Hidden(Foreign):
    __dict__ = property(ended)


class ForeignSlots(Attributes):
    __slots__ = ("value", "without")

    def __init__(self, value: Any) -> None:
        self.value = value


class ForeignList(list[Any]):
    __iter__ = __len__ = __getitem__ = ended


class ForeignDict(dict[Any, Any]):
    __iter__ = __len__ = items = keys = values = ended


class ForeignTuple(tuple[Any, ...]):
    __iter__ = __len__ = ended


class ForeignSet(set[Any]):
    __iter__ = __len__ = ended


class ForeignText(str):
    __repr__ = __str__ = encode = ended  # type: ignore[assignment]


class ForeignBytes(bytes):
    __repr__ = __len__ = __iter__ = __buffer__ = ended


class ForeignInt(int):
    __repr__ = __str__ = __format__ = bit_length = to_bytes = __index__ = ended  # type: ignore[assignment]


class ForeignFloat(float):
    __repr__ = __float__ = ended
    real = imag = property(ended)


class ForeignComplex(complex):
    __repr__ = __complex__ = ended
    real = imag = property(ended)


class ForeignArray(np.ndarray[Any, Any]):
    __array__ = __len__ = ended  # type: ignore[assignment]
    dtype = shape = nbytes = property(ended)


class ForeignTensor(torch.Tensor):
    detach = cpu = __len__ = ended  # type: ignore[assignment]
    dtype = shape = layout = property(ended)

    @classmethod
    def __torch_function__(cls, *_: Any) -> Any:
        raise SystemError("no")


def of_class(kind: type[torch.Tensor], value: torch.Tensor) -> torch.Tensor:
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(kind)


class Wrapper(torch.Tensor):
    """Whatever is done with it, code of a stranger's is executed."""

    @staticmethod
    def __new__(cls) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, (3,))

    @classmethod
    def __torch_dispatch__(cls, *_: Any, **__: Any) -> Any:
        raise EndedError


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


def nested_lists(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def many_of_many() -> Any:
    """10^24 numbers."""
    found: Any = 1.5
    for _ in range(6):
        found = [found] * 10_000
    return found


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
    "foreign object": (Foreign(1), Foreign(2)),
    "foreign slots": (ForeignSlots(1), ForeignSlots(2)),
    "foreign list": (ForeignList([1]), ForeignList([2])),
    "foreign dictionary": (ForeignDict(a=1), ForeignDict(a=2)),
    "foreign tuple": (ForeignTuple([1]), ForeignTuple([2])),
    "foreign set": (ForeignSet([1]), ForeignSet([2])),
    "foreign text": (ForeignText("a"), ForeignText("b")),
    "foreign bytes": (ForeignBytes(b"a"), ForeignBytes(b"b")),
    "foreign int": (ForeignInt(1), ForeignInt(2)),
    "foreign float": (ForeignFloat(1), ForeignFloat(2)),
    "foreign complex": (ForeignComplex(1j), ForeignComplex(2j)),
    "foreign array": (np.ones(2).view(ForeignArray), np.zeros(2).view(ForeignArray)),
    "foreign tensor": (of_class(ForeignTensor, line()), of_class(ForeignTensor, -line())),
    "large number": (10**6000, 10**6000 + 1),
    "many numbers": ([0.5] * 110_000, [0.5] * 109_999 + [1.5]),
    "expanded": (torch.zeros(1, 1).expand(3, 4), torch.ones(1, 1).expand(3, 4)),
    "expanded to another shape": (torch.zeros(1, 1).expand(3, 4), torch.zeros(1, 1).expand(4, 3)),
    "expanded row": (torch.arange(3.0)[None].expand(2, 3), torch.arange(3.0)[None].expand(2, 3) + 1),
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
    "hidden": lambda: Hidden(1),
    "terabytes of one number": lambda: [torch.zeros(1, 1).expand(1 << 20, 1 << 21), torch.ones(()).expand(10**12)],
    "conjugate of one number": lambda: torch.tensor([1j]).conj().expand(1 << 40),
    "deep": lambda: nested_lists(100_000),
    "inference": lambda: torch.inference_mode()(lambda: torch.ones(3) * 2)(),
    "ordered": lambda: OrderedDict(a=torch.ones(1)),
}


@pytest.mark.parametrize("what", list(SAME))
def test_what_is_the_same_has_the_same(what: str) -> None:
    assert checksum(SAME[what]()) == checksum(SAME[what]())


@pytest.mark.parametrize(
    "output",
    [
        torch.zeros(1 << 20).as_strided((1 << 20, 1 << 20), (1, 0)).as_strided((1 << 19, 1 << 19), (1, 1)),
        [1.5] * 2000,
        many_of_many(),
        Wrapper(),
    ],
    ids=["overlapping", "long", "many", "wrapper"],
)
def test_what_is_too_much_or_cannot_be_read_has_none(output: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "MOST_VALUES", 1000)
    assert checksum(output) is None
    found = Outputs(timed=False)
    found.add([1, output])
    found.add(1)
    assert found.checksum() is None


def test_how_a_tensor_lies_in_memory_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is not in one piece is not copied as a whole."""
    monkeypatch.setattr(checksums, "PART_BYTES", 256)
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
def test_the_last_output_is_held_and_added_up_when_all_is_over(timed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large it is."""
    looks: list[str] = []
    monkeypatch.setattr(checksums.Checksum, "add", lambda *_: looks.append("added up"))
    found = Outputs(timed=timed)
    output = torch.empty(1 << 28, device="meta")
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
