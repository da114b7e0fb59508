"""The run directory: atomic, readable at any moment."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.io.plugins import register_io_source

from hwprof.errors import DamagedError, HwprofError, UsageError
from hwprof.run.atomic import atomic
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import ClockSnapshot, Machine, Manifest, PassRecord
from hwprof.run.schema import TABLES, conform, empty
from tests.support import synthetic_run

MACHINE = Machine(
    hostname="here", architecture="x86_64", processor="made", vendor="", family=None, model=None, stepping=None,
    logical_processors=2, physical_cores=None, sockets=None, caches=(), memory_bytes=1, kernel="6", system="",
    hypervisor=None, governor=None, pmus=(), has_core_pmu=False,
)  # fmt: skip


def manifest(name: str = "20260101-000000-made") -> Manifest:
    return Manifest(
        hwprof_version="0",
        name=name,
        created="2026-01-01T00:00:00+00:00",
        command=["hwprof"],
        machine=MACHINE,
        clock=ClockSnapshot(1, 2, 3, 4),
    )


def series(*values: float, pass_name: str = "measure") -> pl.DataFrame:
    return pl.DataFrame(
        {"pass": pass_name, "time_ns": range(len(values)), "name": "memory/rss", "unit": "B", "value": values}
    )


def test_a_run_is_found_again(tmp_path: Path) -> None:
    created = RunDirectory.create(tmp_path, manifest())
    assert RunDirectory.latest(tmp_path).path == created.path
    assert RunDirectory.open(tmp_path / "latest").manifest.name == created.manifest.name


def test_two_runs_in_one_second_do_not_meet(tmp_path: Path) -> None:
    first, second = RunDirectory.create(tmp_path, manifest()), RunDirectory.create(tmp_path, manifest())
    assert first.path != second.path
    assert RunDirectory.latest(tmp_path).path == second.path


def test_a_name_that_another_hwprof_takes_meanwhile_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = RunDirectory.create(tmp_path, manifest())
    monkeypatch.setattr(Path, "exists", lambda path: False)  # it was not there a moment before
    second = RunDirectory.create(tmp_path, manifest())
    assert second.path.name == f"{first.path.name}-2" == second.manifest.name
    assert RunDirectory.open(second.path).manifest.name == second.path.name
    assert {one.name for one in tmp_path.iterdir()} == {first.path.name, second.path.name, "latest"}


def test_a_run_that_is_removed_leaves_latest_to_the_one_before(tmp_path: Path) -> None:
    good = RunDirectory.create(tmp_path, manifest())
    RunDirectory.create(tmp_path, manifest("20260101-000001-refused")).remove()
    assert (tmp_path / "latest").resolve() == good.path.resolve()
    good.remove()
    assert list(tmp_path.iterdir()) == []


def test_rows_count_once_their_pass_is_completed(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, manifest())
    part = tmp_path / "part.parquet"
    write_table(part, "series", series(1.0, 2.0))
    run.manifest.passes.append(PassRecord(name="measure"))
    run.append("series", part)
    assert RunDirectory.open(run.path).read("series").height == 0
    run.manifest.passes[0].status = "completed"
    run.save_manifest()
    assert RunDirectory.open(run.path).read("series")["value"].to_list() == [1.0, 2.0]


def test_a_thread_that_two_collectors_tell_of_is_one(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, manifest())
    part = tmp_path / "part.parquet"
    for names in ({1: "main", 2: "pool"}, {2: "", 3: "late"}):
        rows = {"pass": "trace", "pid": 1, "tid": list(names), "name": list(names.values()), "role": "worker"}
        write_table(part, "threads", pl.DataFrame(rows))
        run.append("threads", part)
    write_table(part, "threads", pl.DataFrame({"pass": "measure", "pid": 1, "tid": 1, "name": "main", "role": "main"}))
    run.append("threads", part)
    found = pl.read_parquet(run.path / "threads.parquet").select("pass", "tid", "name").rows()
    assert found == [("trace", 1, "main"), ("trace", 2, "pool"), ("trace", 3, "late"), ("measure", 1, "main")]


def test_of_a_table_that_fails_nothing_comes_later(tmp_path: Path) -> None:
    """Polars' threads open a path when they come to it: once in some twenty times after all was taken away."""

    def fails(*_: object) -> Iterator[pl.DataFrame]:
        yield series(1.0).drop("unit")

    rows = register_io_source(fails, schema=TABLES["series"])
    for number in range(200):
        with pytest.raises(pl.exceptions.PolarsError):
            write_table(tmp_path / f"{number}.parquet", "series", rows)
    time.sleep(0.1)
    assert list(tmp_path.iterdir()) == []


def test_append_adds(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, manifest())
    part = tmp_path / "part.parquet"
    for name in ("measure", "trace"):
        write_table(part, "series", series(1.0, pass_name=name))
        run.append("series", part)
        run.manifest.passes.append(PassRecord(name=name, status="completed"))
        assert not part.exists()
    assert run.read("series")["pass"].to_list() == ["measure", "trace"]


def test_a_run_that_somebody_measures_meanwhile_is_not_damaged(tmp_path: Path) -> None:
    run, part, readers = RunDirectory.create(tmp_path, manifest()), tmp_path / "part.parquet", []
    for value in (1.0, 2.0, 3.0):
        write_table(part, "series", series(value))
        run.append("series", part)
        readers.append(RunDirectory.open(run.path))
    reader = readers[0]
    with pytest.raises(HwprofError, match="is being written to") as failure:
        reader.read("series")
    assert not isinstance(failure.value, DamagedError)
    assert not readers[-1].read("series").height  # the pass is not completed
    (run.path / "series.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamagedError):
        RunDirectory.open(run.path).read("series")


def test_a_link_in_place_of_rows_does_not_become_the_table(tmp_path: Path) -> None:
    """The model's code can put one into the folder of its pass."""
    run = RunDirectory.create(tmp_path, manifest())
    write_table(tmp_path / "elsewhere.parquet", "series", series(1.0))
    (tmp_path / "part.parquet").symlink_to("elsewhere.parquet")
    run.append("series", tmp_path / "part.parquet")
    assert not (run.path / "series.parquet").is_symlink()
    assert pl.read_parquet(run.path / "series.parquet").height == 1


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("before")
    with pytest.raises(ZeroDivisionError), atomic(target) as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("content", [b"", b"{", b'{"name": 1}'])
def test_a_damaged_manifest_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(HwprofError, match="damaged"):
        RunDirectory.open(tmp_path)


def test_no_run_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hwprof collect"):
        RunDirectory.latest(tmp_path)
    with pytest.raises(UsageError, match="not a run directory"):
        RunDirectory.open(tmp_path)


def test_a_folder_of_runs_is_told_as_one(tmp_path: Path) -> None:
    synthetic_run.build(tmp_path / "my runs")
    with pytest.raises(UsageError, match=r"not a run directory.*--root '.*my runs', which holds runs"):
        RunDirectory.open(tmp_path / "my runs")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    newer = manifest()
    newer.schema_version = 99
    run = RunDirectory.create(tmp_path, newer)
    with pytest.raises(HwprofError, match="newer"):
        RunDirectory.open(run.path)


def test_missing_tables_read_as_empty(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, manifest())
    for table, schema in TABLES.items():
        assert run.read(table).schema == schema


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HwprofError, match="--output"):
        RunDirectory.create(tmp_path / "file", manifest())


def test_conform_fills_orders_and_refuses() -> None:
    frame = conform("series", series(1).drop("pass"))
    assert frame.schema == TABLES["series"]
    assert frame["pass"].null_count() == 1
    with pytest.raises(pl.exceptions.SchemaError, match="colour"):
        conform("series", empty("series").with_columns(colour=1))


def test_remove_leaves_nothing(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, manifest())
    run.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_the_time_of_brackets_reads_in_todays_spelling(tmp_path: Path) -> None:
    """Shapes were ``[1,3,640,480]`` in tables once."""
    run = synthetic_run.build(tmp_path)
    today = {table: run.read(table) for table in ("layers", "layer_calls", "spans")}

    def bracketed(column: str) -> pl.Expr:
        shapes = pl.col(column).str.split(" ").list.eval("[" + pl.element().str.replace_all("x", ",") + "]")
        return shapes.list.join(" ")

    for table, frame in today.items():
        columns = [name for name in ("input_shapes", "output_shapes") if name in frame.columns]
        write_table(run.path / f"{table}.parquet", table, frame.with_columns(map(bracketed, columns)))
    old = RunDirectory.open(run.path)
    assert pl.read_parquet(run.path / "layers.parquet")["input_shapes"][0] == "[1,3,640,480]"
    for table, frame in today.items():
        assert old.read(table).equals(frame), table


@pytest.mark.parametrize(("umask", "folder", "file"), [(0o022, 0o755, 0o644), (0o077, 0o700, 0o600)])
def test_what_is_kept_has_the_permissions_that_the_user_wants(
    tmp_path: Path, umask: int, folder: int, file: int
) -> None:
    before = os.umask(umask)
    try:
        run = synthetic_run.build(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(run.path.stat().st_mode) == folder
    assert {stat.S_IMODE(one.stat().st_mode) for one in run.path.iterdir() if one.is_file()} == {file}
