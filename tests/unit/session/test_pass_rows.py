"""The rows of a pass, in memory and in files."""

from __future__ import annotations

import threading
from pathlib import Path

import polars as pl
import pytest

from hwprof import helper_threads
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
    assert held(found) == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == (many < 100)


def test_they_are_written_though_the_models_code_has_replaced_pythons_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise AssertionError("it would begin nothing")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    found = PassRows(tmp_path, 1)
    for value in range(3):
        found.add("series", rows(value))
    assert held(found) == [0, 1, 2]


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


@pytest.mark.parametrize("many", [1, 2, 100])
def test_they_are_written_in_their_order_and_nothing_else_is_left(tmp_path: Path, many: int) -> None:
    found, others = PassRows(tmp_path, many), PassRows(tmp_path, many)
    for value in range(3):
        found.add("series", rows(value))
        others.add("series", rows(10 + value))
    found.add_all(others)
    assert found.write(tmp_path) == ["series"]
    assert [file.name for file in tmp_path.iterdir()] == ["series.parquet"]
    assert pl.read_parquet(tmp_path / "series.parquet")["value"].to_list() == [0, 1, 2, 10, 11, 12]


def test_a_table_that_lies_in_one_file_is_moved(tmp_path: Path) -> None:
    found = PassRows(tmp_path, 2)
    for value in range(5):
        found.add("series", rows(value))
    found.tables()
    (file,) = tmp_path.iterdir()
    inode = file.stat().st_ino
    found.write(tmp_path)
    assert (tmp_path / "series.parquet").stat().st_ino == inode
    assert pl.read_parquet(tmp_path / "series.parquet")["value"].to_list() == [0, 1, 2, 3, 4]


def test_what_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    found = PassRows(tmp_path, 1)
    with pytest.raises(pl.exceptions.PolarsError):  # by the next one, or at the end
        for _ in range(10):
            found.add("series", rows(1).drop("unit"))
        found.tables()
    found.discard()
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_lost_are_lost_whoever_hears_of_it(tmp_path: Path) -> None:
    """Another's rows are added in between, whose failure it is not: who asks for the rows hears of it again."""
    found, others = PassRows(tmp_path, 1), PassRows(tmp_path, 1)
    found.add("series", rows(1).drop("unit"))
    others.add("series", rows(2))
    for ask in (lambda: found.add_all(others), found.settle, found.tables, lambda: found.write(tmp_path)):
        with pytest.raises(pl.exceptions.PolarsError):
            ask()
    for one in (found, others):
        one.discard()
    assert list(tmp_path.iterdir()) == []


def test_without_another_thread_all_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(helper_threads, "start_new_thread", refused)
    found = PassRows(tmp_path, 2)
    for value in range(5):
        found.add("series", rows(value))
    assert held(found) == [0, 1, 2, 3, 4] and list(tmp_path.iterdir()) == []
    found.write(tmp_path)
    assert pl.read_parquet(tmp_path / "series.parquet")["value"].to_list() == [0, 1, 2, 3, 4]
