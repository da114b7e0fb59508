"""The copy of a bench at a URL."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from hwprof.bench.mirror import Mirror, check
from hwprof.bench.store import LARGEST_BYTES, PLAN_FILE, RESULT_FILE, Plan, Store
from hwprof.errors import HwprofError, UsageError
from tests.unit.bench.support import case, plan, result


def done(store: Store, number: int) -> None:
    folder = store.begin(store.plan.cases[number])
    (folder / "pyperf.json").write_text("{}")
    store.keep(result(store.plan.cases[number], 5))


def fetched(url: str, root: Path, told: list[str] | None = None) -> Path:
    return Mirror(url).fetch(root, lambda _: None, ([] if told is None else told).append)


def test_a_bench_goes_on_from_its_copy(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "here", plan(case(), case(imgsz=32)))
    mirror = Mirror(f"file://{tmp_path}/there/{store.path.name}")
    mirror.put_all(store, done=[])
    done(store, 0)
    mirror.put_case(store, store.plan.cases[0])
    (store.path / "bench.md").write_text("a table")
    (store.path / ".lock").touch()
    mirror.put_all(store, done=[])
    there = tmp_path / "there" / store.path.name
    assert {one.name for one in there.iterdir()} == {PLAN_FILE, "bench.md", "cases"}
    shutil.rmtree(store.path)
    again = Store.open(fetched(f"file://{there}", tmp_path / "here"))
    assert again.path == store.path and again.results() == [result(case(), 5)]
    assert [one.workload.imgsz for one in again.left()] == [32]
    with pytest.raises(UsageError, match="is here already"):
        fetched(f"file://{there}", tmp_path / "here")


def test_what_an_attempt_before_has_left_is_not_in_the_copy(tmp_path: Path) -> None:
    store = Store.create(tmp_path, plan(case()))
    mirror = Mirror(f"file://{tmp_path}/there")
    folder = store.begin(case())
    for name in ("failure.json", "samples-1.json"):
        (folder / name).touch()
    mirror.put_case(store, case())
    done(store, 0)
    mirror.put_case(store, case())
    there = tmp_path / "there" / "cases" / case().key
    assert {one.name for one in there.iterdir()} == {one.name for one in store.folder_of(case()).iterdir()}


def test_the_copy_is_below_the_url_and_keeps_its_name(tmp_path: Path) -> None:
    wanted = plan(case())
    wanted.store = "file:///mnt/benches/"
    store = Store.create(tmp_path, wanted)
    store.path.rename(tmp_path / "renamed")
    kept = Store.open(tmp_path / "renamed").plan.store or ""
    assert re.fullmatch(rf"file:///mnt/benches/{store.path.name}-[0-9a-f]{{6}}", kept)
    there = plan(case())
    there.store = "file:///mnt/benches"
    assert Store.create(tmp_path / "elsewhere", there).plan.store != kept, "another one of the same second"


@pytest.mark.parametrize("what", ["damaged", "large", "pipe", "link"])
def test_a_copy_that_cannot_be_taken_leaves_nothing(tmp_path: Path, what: str) -> None:
    there = tmp_path / "there" / "bench-1"
    (there / "cases" / "a").mkdir(parents=True)
    (there / PLAN_FILE).write_bytes(msgspec.json.encode(plan(case()))[: 99 if what == "damaged" else None])
    odd = there / "cases" / "a" / "result.json"
    if what == "large":
        odd.touch()
        os.truncate(odd, LARGEST_BYTES + 1)
    elif what == "pipe":
        os.mkfifo(odd)
    elif what == "link":
        odd.symlink_to("/etc/passwd")
    url = f"file://{there}"
    if what in ("damaged", "large"):
        with pytest.raises(HwprofError, match="is damaged" if what == "damaged" else "more than 64 MiB"):
            fetched(url, tmp_path / "here")
        assert [*(tmp_path / "here").iterdir()] == []
    else:
        found = fetched(url, tmp_path / "here")
        assert {one.name for one in found.rglob("*")} == {PLAN_FILE, "cases"}


def test_what_is_too_large_and_not_needed_is_left_out_and_stays_there(tmp_path: Path) -> None:
    """Samples may have as much as they may have here."""
    store = Store.create(tmp_path / "here", plan(case()))
    done(store, 0)
    sizes = {"log.txt": LARGEST_BYTES + 1, "samples-1.jsonl": LARGEST_BYTES + 1, "samples-2.jsonl": 1 + (1 << 30)}
    there = tmp_path / "there" / store.path.name
    Mirror(f"file://{there}").put_all(store, done=[case()])
    for name, size_bytes in sizes.items():
        (there / "cases" / case().key / name).touch()
        os.truncate(there / "cases" / case().key / name, size_bytes)
    told: list[str] = []
    again = Store.open(fetched(f"file://{there}", tmp_path / "again", told))
    names = {one.name for one in again.folder_of(case()).iterdir()}
    assert names == {"pyperf.json", RESULT_FILE, "samples-1.jsonl"} and not again.left()
    assert [line.rpartition("/")[2] for line in told] == [
        "log.txt has more than 64 MiB: left out", "samples-2.jsonl has more than 1024 MiB: left out",
    ]  # fmt: skip
    Mirror(again.plan.store or "").put_all(again, done=[case()])
    assert sizes.keys() <= {one.name for one in (there / "cases" / case().key).iterdir()}


def test_a_copy_is_copied_to_where_it_came_from(tmp_path: Path) -> None:
    there = tmp_path / "there" / "bench-1"
    there.mkdir(parents=True)
    wanted = plan(case())
    wanted.store = f"file://{tmp_path}/elsewhere"
    (there / PLAN_FILE).write_bytes(msgspec.json.encode(wanted))
    assert Store.open(fetched(f"file://{there}/", tmp_path / "here")).plan.store == f"file://{there}"


def test_a_plan_that_is_not_allowed_leaves_nothing(tmp_path: Path) -> None:
    there = tmp_path / "there" / "bench-1"
    there.mkdir(parents=True)
    (there / PLAN_FILE).write_bytes(msgspec.json.encode(plan(case())))

    def allow(_: Plan) -> None:
        raise UsageError("not this one")

    with pytest.raises(UsageError, match="not this one"):
        Mirror(f"file://{there}").fetch(tmp_path / "here", allow, lambda _: None)
    assert [*(tmp_path / "here").iterdir()] == []


def test_a_copy_has_more_digits_than_its_bench(tmp_path: Path) -> None:
    """Of a name without them the copies that there are are told; with them, that the bench is here."""
    wanted = plan(case())
    wanted.store = f"file://{tmp_path}/there"
    store = Store.create(tmp_path / "here", wanted)
    url = store.plan.store or ""
    Mirror(url).put_all(store, done=[])
    for near in (f"file://{tmp_path}/there/{store.path.name}", f"file://{tmp_path}/there"):
        with pytest.raises(UsageError, match="no folder of a bench") as raised:
            fetched(near, tmp_path / "here")
        assert raised.value.remedy == f"--resume {url}"
    with pytest.raises(UsageError, match="is here already") as raised:
        fetched(url, tmp_path / "here")
    assert raised.value.remedy == f"--resume {store.path}"
    assert fetched(url, tmp_path / "elsewhere").name == url.rpartition("/")[2]


@pytest.mark.parametrize("name", ["-abcdef", "bench", "..x"])
def test_any_name_of_a_copy_is_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / "there" / name).mkdir(parents=True)
    (tmp_path / "there" / name / PLAN_FILE).write_bytes(msgspec.json.encode(plan(case())))
    assert fetched(f"file://{tmp_path}/there/{name}", tmp_path / "here").name == name


def test_only_what_a_bench_has_is_fetched(tmp_path: Path) -> None:
    there = tmp_path / "there" / "bench-1"
    (there / "cases" / "a" / "deep").mkdir(parents=True)
    (there / PLAN_FILE).write_bytes(msgspec.json.encode(plan(case())))
    for name in ("cases/a/result.json", "cases/a/.hidden", "cases/a/deep/file", "other.txt", "cases/a/x\x1b[31m"):
        (there / name).write_text("x")
    found = fetched(f"file://{there}", tmp_path)
    files = {str(one.relative_to(found)) for one in found.rglob("*") if one.is_file()}
    assert files == {PLAN_FILE, "cases/a/result.json"}


def test_what_cannot_be_copied_is_a_line(tmp_path: Path) -> None:
    store = Store.create(tmp_path, plan(case()))
    (tmp_path / "file").touch()
    with pytest.raises(HwprofError, match="cannot write to file://"):
        Mirror(f"file://{tmp_path}/file/x").put_all(store, done=[])
    with pytest.raises(UsageError, match="no folder of a bench"):
        fetched(f"file://{tmp_path}/nothing", tmp_path / "x")


def test_a_result_is_the_last_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.create(tmp_path, plan(case()))
    done(store, 0)
    mirror = Mirror(f"file://{tmp_path}/there/{store.path.name}")
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
        ("memory://x", "is gone when this process ends"),
        ("://", "no URL"),
        ("", "an empty text names no place. Try: file:///mnt"),
        ("file://", "file:// names no place. Try: file:///mnt"),
        ("tar://", "tar:// names no place. Try: file:///mnt"),
        ("dir://x", "dir://x alone is no place"),
        ("simplecache::file:///mnt/x", "at one place alone"),
        ("blockcache::http://me:secret@host/x", "a password in a URL"),
        ("http:/me:secret@host/x", "a password in a URL"),
        ("me:secret@host/x", "a password in a URL"),
    ],
)
def test_urls_that_are_none(url: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        check(url)
    assert "secret" not in str(caught.value)


def test_what_only_looks_like_a_password_is_a_name(tmp_path: Path) -> None:
    check(f"file://{tmp_path}/a:b@c")
