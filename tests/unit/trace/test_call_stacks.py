"""Callers of the trace's call stacks."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.errors import HwprofError
from hwprof.trace.call_stacks import callers_of


@pytest.mark.parametrize("parents", [[None, 2, 1], [None, 1], [2, None]])
def test_stacks_that_may_go_round_in_a_circle_are_damage(parents: list[int | None]) -> None:
    stacks = pl.DataFrame({"stack": range(len(parents)), "parent": parents, "address": 1, "kernel": None})
    with pytest.raises(HwprofError, match="damaged"):
        callers_of(stacks)


def test_a_stack_comes_after_its_caller() -> None:
    stacks = pl.DataFrame({"stack": [0, 1, 2], "parent": [None, 0, 1], "address": 1, "kernel": None})
    assert [parent for parent, _ in callers_of(stacks).values()] == [None, 0, 1]
