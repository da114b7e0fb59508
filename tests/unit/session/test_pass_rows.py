"""The rows of a pass, in memory and in files."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hwprof.run.schema import conform
from hwprof.session.pass_rows import PassRows


def rows(*values: float) -> pl.DataFrame:
    """Of a series."""
    one = [{"pass": "p", "time_ns": 1, "name": "n", "unit": "B", "value": value} for value in values]
    return conform("series", pl.DataFrame(one))


def held(found: PassRows) -> list[float]:
    return found.tables()["series"].collect()["value"].to_list()


@pytest.mark.parametrize("many", [1, 2, 3, 100])
def test_all_of_them_are_there_wherever_they_lie(tmp_path: Path, many: int) -> None:
    found = PassRows(tmp_path, many)
    for value in range(5):
        found.add("series", rows(value))
    assert sorted(held(found)) == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == 5 // many


def test_without_a_folder_they_are_in_memory(tmp_path: Path) -> None:
    found = PassRows(None, 1)
    found.add("series", rows(1, 2))
    assert held(found) == [1, 2]


def test_others_become_this_ones_and_leave_nothing_behind(tmp_path: Path) -> None:
    found, others = PassRows(tmp_path, 2), PassRows(tmp_path, 2)
    for value in range(3):
        found.add("series", rows(value))
        others.add("series", rows(10 + value))
    found.add_all(others)
    others.discard()
    assert sorted(held(found)) == [0, 1, 2, 10, 11, 12]
    assert others.tables() == {}
    found.discard()
    assert list(tmp_path.iterdir()) == [] and found.tables() == {}
