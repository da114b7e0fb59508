"""Tensors in what models get and give."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import torch

from hwprof.workload.tensors import tensors_in


class Endless(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        return repeat(1)


class EndlessTuple(tuple[Any, ...]):
    def __iter__(self) -> Iterator[Any]:
        return repeat(1)


def test_a_collection_of_a_class_of_its_own_is_read_as_what_it_derives_from() -> None:
    first, second = torch.zeros(1), torch.ones(1)
    found = tensors_in({"a": Endless([first, (1, EndlessTuple((second,)))])})
    assert [tensor is expected for tensor, expected in zip(found, (first, second), strict=True)] == [True, True]
