"""The copy of a bench at a URL."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from hwprof.bench.mirror import Mirror, check, mirror_below
from hwprof.bench.store import PLAN_FILE, RESULT_FILE, Store
from hwprof.errors import HwprofError, UsageError
from tests.unit.bench.support import case, plan, result


def done(store: Store, number: int) -> None:
    folder = store.begin(store.plan.cases[number])
    (folder / "pyperf.json").write_text("{}")
    store.keep(result(store.plan.cases[number], 5))


def test_a_bench_goes_on_from_its_copy(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "here", plan(case(), case(imgsz=32)))
    mirror = mirror_below(f"file://{tmp_path}/there/", store)
    mirror.put_all(store, done=[])
    done(store, 0)
    mirror.put_case(store, store.plan.cases[0])
    (store.path / "bench.md").write_text("a table")
    (store.path / ".lock").touch()
    mirror.put_all(store, done=[])
    there = tmp_path / "there" / store.path.name
    assert {one.name for one in there.iterdir()} == {PLAN_FILE, "bench.md", "cases"}
    shutil.rmtree(store.path)
    again = Store.open(Mirror(f"file://{there}").fetch(tmp_path / "here"))
    assert again.path == store.path and again.results() == [result(case(), 5)]
    assert [one.workload.imgsz for one in again.left()] == [32]
    with pytest.raises(UsageError, match="is here already"):
        Mirror(f"file://{there}").fetch(tmp_path / "here")


def test_only_what_a_bench_has_is_fetched(tmp_path: Path) -> None:
    there = tmp_path / "there" / "bench-1"
    (there / "cases" / "a" / "deep").mkdir(parents=True)
    (there / PLAN_FILE).write_bytes(msgspec.json.encode(plan(case())))
    for name in ("cases/a/result.json", "cases/a/.hidden", "cases/a/deep/file", "other.txt", "cases/a/x\x1b[31m"):
        (there / name).write_text("x")
    found = Mirror(f"file://{there}").fetch(tmp_path)
    files = {str(one.relative_to(found)) for one in found.rglob("*") if one.is_file()}
    assert files == {PLAN_FILE, "cases/a/result.json"}


def test_what_cannot_be_copied_is_a_line(tmp_path: Path) -> None:
    store = Store.create(tmp_path, plan(case()))
    (tmp_path / "file").touch()
    with pytest.raises(HwprofError, match="cannot write to file://"):
        mirror_below(f"file://{tmp_path}/file", store).put_all(store, done=[])
    with pytest.raises(UsageError, match="no folder of a bench"):
        Mirror(f"file://{tmp_path}/nothing").fetch(tmp_path / "x")


def test_a_result_is_the_last_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.create(tmp_path, plan(case()))
    done(store, 0)
    mirror = mirror_below(f"file://{tmp_path}/there", store)
    put: list[str] = []
    monkeypatch.setattr(mirror._files, "pipe_file", lambda path, _: put.append(Path(path).name))
    mirror.put_case(store, case())
    assert put == ["pyperf.json", RESULT_FILE]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("/mnt/benches", "no URL"),
        ("nope://x/y", "Protocol not known"),
        ("sftp://me:secret@host/x", "a password in a URL"),
    ],
)
def test_urls_that_are_none(url: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        check(url)
