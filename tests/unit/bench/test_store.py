"""A bench's folder: what is done is done once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hwprof.bench.store import MACHINES, PLAN_FILE, RESULT_FILE, Store
from hwprof.errors import HwprofError, UsageError
from tests.unit.bench.support import case, failed, plan, result

CASES = [case(imgsz=size) for size in (320, 640, 960)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "results", plan(*CASES))


def test_what_is_kept_is_not_done_again(store: Store) -> None:
    assert store.left() == CASES
    for one in (result(CASES[1], 7), failed(CASES[2], "no")):
        store.begin(one.case)
        store.keep(one)
    again = Store.open(store.path)
    assert again.left() == [CASES[0], CASES[2]] and [one.case for one in again.results()] == CASES[1:]
    assert again.results()[0] == result(CASES[1], 7)


def test_what_was_killed_in_its_midst_leaves_nothing(store: Store) -> None:
    folder = store.begin(CASES[0])
    (folder / "samples-1.json").write_text("{")
    (folder / ".result.json.x.part").write_text("{")
    assert Store.open(store.path).left() == CASES
    assert list(store.begin(CASES[0]).iterdir()) == []


DEEP = b'{"unknown":' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"case": 1}', DEEP, b'{"\xff": 1}'])
def test_a_result_that_cannot_be_read_is_done_again(store: Store, data: bytes) -> None:
    store.begin(CASES[0])
    store.keep(result(CASES[0], 7))
    (store.folder_of(CASES[0]) / RESULT_FILE).write_bytes(data)
    assert store.left() == CASES


def test_another_cases_result_is_none(store: Store) -> None:
    store.begin(CASES[0])
    store.keep(result(CASES[0], 7))
    folder = store.begin(CASES[1])
    (folder / RESULT_FILE).write_bytes((store.folder_of(CASES[0]) / RESULT_FILE).read_bytes())
    assert store.left() == CASES[1:]


def test_nobody_else_works_on_it_meanwhile(store: Store) -> None:
    other = Store.open(store.path)
    with store.alone(), pytest.raises(HwprofError, match="another hwprof bench works on"), other.alone():
        pass
    with store.alone():
        pass


def test_what_failed_is_tried_again(store: Store) -> None:
    """By an older version, too, which said whether it would fail again."""
    for one in (result(CASES[0], 5), failed(CASES[1], "x"), failed(CASES[2], "y")):
        store.begin(one.case)
        store.keep(one)
    file = store.folder_of(CASES[2]) / RESULT_FILE
    file.write_bytes(file.read_bytes().replace(b'"message":"y"', b'"message":"y","final":true'))
    assert len(store.results()) == 3 and store.left() == CASES[1:]


def test_two_of_one_second_have_two_folders(store: Store) -> None:
    assert Store.create(store.path.parent, store.plan).path != store.path


def test_a_new_one_goes_where_no_case_was_begun(store: Store) -> None:
    """One that was opened again, or whose cases other machines have, stays."""
    again = Store.open(store.path)
    again.discard_unbegun()
    assert store.path.exists()
    store.discard_unbegun()
    assert not store.path.exists()
    begun = Store.create(store.path.parent, store.plan)
    begun.begin(CASES[0])
    begun.discard_unbegun()
    assert begun.path.exists()


def test_what_goes_on_is_what_a_shell_takes(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "two words", plan(*CASES))
    assert store.again(None) == f"hwprof bench --resume '{store.path}'"
    assert store.again("here:1") == f"hwprof bench --resume '{store.path}' --on here:1"


def test_what_is_no_bench(tmp_path: Path, store: Store) -> None:
    with pytest.raises(UsageError, match="no folder of a bench"):
        Store.open(tmp_path)
    (store.path / PLAN_FILE).write_text("{}")
    with pytest.raises(HwprofError, match="is damaged"):
        Store.open(store.path)


def test_a_machine_that_cannot_be_read_is_none(store: Store) -> None:
    (store.path / MACHINES).mkdir()
    (store.path / MACHINES / "a.json").write_bytes(DEEP)
    assert store.machines() == {}


def test_a_plan_nested_too_deeply_is_damaged(store: Store) -> None:
    (store.path / PLAN_FILE).write_bytes(DEEP)
    with pytest.raises(HwprofError, match="is damaged: it is nested too deeply"):
        Store.open(store.path)


@pytest.mark.parametrize("environment", [{"A=B": "c"}, {"": "c"}, {"A\0": "c"}, {"A": "\0"}])
def test_a_plan_whose_environment_no_process_can_have_is_damaged(store: Store, environment: dict[str, str]) -> None:
    store.plan.cases = [msgspec.structs.replace(CASES[0], environment=environment)]
    (store.path / PLAN_FILE).write_bytes(msgspec.json.encode(store.plan))
    with pytest.raises(HwprofError, match=r"is damaged: .*environment"):
        Store.open(store.path)


def test_a_place_that_cannot_be_written(tmp_path: Path, store: Store) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HwprofError, match="cannot write a bench"):
        Store.create(tmp_path / "file", store.plan)
