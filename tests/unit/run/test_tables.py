"""Tables on disk: read by their very name, and refused in one line where they are not what they should be."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from hwprof.errors import HwprofError
from hwprof.report.document.builder import build as document
from hwprof.report.files import write_files
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.schema import TABLES, UNIQUE
from hwprof.run.tables import readable, scan_table, unreadable
from hwprof.trace.writer import write_trace
from tests.support.command import hwprof_here
from tests.support.odd_files import device, fifo
from tests.support.synthetic_run import build
from tests.support.synthetic_variants import change_table, sampled_without_pmu

PATTERN = "a*[1]{x}?"


def test_a_folder_whose_name_is_a_pattern_is_that_folder(tmp_path: Path) -> None:
    other = build(tmp_path / "a1", iterations=4)
    (tmp_path / "a1x").symlink_to("a1")
    run = build(tmp_path / PATTERN, iterations=2)
    own = run.read("counts").height
    assert own != other.read("counts").height
    part = tmp_path / PATTERN / "part.parquet"
    write_table(part, "counts", run.read("counts"))
    run.append("counts", part)
    assert run.read("counts").height == 2 * own
    assert other.read("counts").height == build(tmp_path / "same", iterations=4).read("counts").height


def test_a_report_of_such_a_folder_has_its_own_figures(tmp_path: Path) -> None:
    for name in ("a1", PATTERN):
        run = build(tmp_path / name).path
        run.rename(tmp_path / name / "run")
    expected = document(RunDirectory.open(tmp_path / "a1" / "run"))
    run_directory = RunDirectory.open(tmp_path / PATTERN / "run")
    assert document(run_directory).parts == expected.parts
    write_files(run_directory)
    write_trace(run_directory, run_directory.path / "trace.pftrace")
    assert (run_directory.path / "layers.csv").read_bytes()


def test_a_folder_named_like_the_home_directory_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert build(Path("~")).read("spans").height > 0


def without_a_column(file: Path) -> None:
    pl.read_parquet(file).drop("tid").write_parquet(file)


def of_another_type(file: Path) -> None:
    pl.read_parquet(file).with_columns(pl.col("begin_ns").cast(pl.String)).write_parquet(file)


@pytest.mark.parametrize(("table", "column"), [("spans", "begin_ns"), ("spans", "pass"), ("layers", "path")])
def test_a_null_where_none_may_be_is_damage(tmp_path: Path, table: str, column: str) -> None:
    """Told by whoever reads the table: at once, or part by part."""
    run = build(tmp_path)
    file = run.path / f"{table}.parquet"
    rows = pl.read_parquet(file)
    first = pl.int_range(pl.len()) == 0
    rows.with_columns(pl.when(~first).then(column).alias(column)).write_parquet(file)
    for use in (lambda: document(run), lambda: write_trace(run, tmp_path / "trace.pftrace")):
        with pytest.raises(HwprofError, match=rf"^{table}\.parquet of this run is damaged: .*\b{column}\b"):
            use()


@pytest.mark.parametrize("time", [-(2**63), -1, 2**62])
@pytest.mark.parametrize(("table", "column"), [("spans", "begin_ns"), ("spans", "end_ns"), ("series", "time_ns")])
def test_a_time_that_no_clock_told_is_damage(tmp_path: Path, table: str, column: str, time: int) -> None:
    """What is added to it or subtracted from it overflows."""
    run = build(tmp_path)
    first = pl.int_range(pl.len()) == 0
    change_table(run, table, pl.when(first).then(pl.lit(time)).otherwise(column).alias(column))
    damage = rf"^{table}\.parquet of this run is damaged: .*\b{column}\b"
    if table == "spans":
        with pytest.raises(HwprofError, match=damage):
            document(run)
    else:
        (said,) = document(run).damaged
        assert re.match(damage, said), "the rest of the report stands"
    with pytest.raises(HwprofError, match=damage):
        write_trace(run, tmp_path / "trace.pftrace")


@pytest.mark.parametrize("cpu_ns", [-(2**63), 2**62, 2**63 - 1])
def test_a_duration_that_no_clock_told_is_damage(tmp_path: Path, cpu_ns: int) -> None:
    """A multiple of it is no number of 64 bits."""
    run = sampled_without_pmu(tmp_path)
    change_table(run, "samples", pl.lit(cpu_ns).alias("cpu_ns"))
    (said,) = document(run).damaged
    assert said.startswith("samples.parquet of this run is damaged: it has impossible times in cpu_ns, or the model's")


def test_a_span_that_ends_before_it_begins_is_damage(tmp_path: Path) -> None:
    run = build(tmp_path)
    stage = pl.col("kind") == "stage"
    change_table(run, "spans", pl.when(stage).then(0).otherwise("end_ns").alias("end_ns"))
    for use in (lambda: document(run), lambda: write_trace(run, tmp_path / "trace.pftrace")):
        with pytest.raises(HwprofError, match=r"^spans\.parquet of this run is damaged: .* times in end_ns"):
            use()


@pytest.mark.parametrize("table", UNIQUE)
def test_a_row_that_is_there_twice_is_damage(tmp_path: Path, table: str) -> None:
    """Joins would multiply it: some hundred thousand of them take all memory."""
    run = build(tmp_path)
    file = run.path / f"{table}.parquet"
    rows = pl.read_parquet(file) if file.exists() else one_row(table)
    write_table(file, table, pl.concat([rows, rows.head(1)]))
    with pytest.raises(
        HwprofError, match=rf"^{table}\.parquet of this run is damaged: it has rows with the same pass, "
    ):
        run.of_pass(table, "measure")
    if table == "spans":
        with pytest.raises(HwprofError, match=rf"^{table}\.parquet of this run is damaged"):
            write_trace(run, tmp_path / "trace.pftrace")


def one_row(table: str) -> pl.DataFrame:
    schema = TABLES[table]
    return pl.DataFrame({name: ["measure" if kind == pl.String else 1] for name, kind in schema.items()}, schema=schema)


def test_a_link_to_nowhere_is_damage(tmp_path: Path) -> None:
    run = build(tmp_path)
    file = run.path / "spans.parquet"
    file.unlink()
    file.symlink_to(file.name)
    with pytest.raises(HwprofError, match=r"^spans\.parquet of this run is damaged"):
        run.read("spans")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-5]),
    "garbage": lambda file: file.write_bytes(b"\x1b[31m" * 1000),
    "pipe": fifo,
    "device": device,
    "column": without_a_column,
    "type": of_another_type,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_table_is_told_in_one_line(tmp_path: Path, kind: str) -> None:
    run = build(tmp_path)
    DAMAGE[kind](run.path / "spans.parquet")
    done = hwprof_here("report", str(run.path))
    assert done.returncode == 1
    assert done.stderr.startswith("hwprof: spans.parquet of this run is damaged: ")
    assert "defect of hwprof" not in done.stderr and done.stderr.count("\n") == 1


def test_rows_that_cannot_be_decoded_are_damage_too(tmp_path: Path) -> None:
    file = tmp_path / "counts.parquet"
    write_table(file, "counts", build(tmp_path / "run").read("counts"))
    data = bytearray(file.read_bytes())
    data[4:200] = bytes(196)  # pages begin here; what describes them is at the end
    file.write_bytes(data)
    rows = scan_table(file, "counts")
    with pytest.raises(HwprofError, match=r"^counts\.parquet of this run is damaged"), readable(file):
        rows.collect()


def test_columns_of_a_later_version_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "series.parquet"
    row = {"pass": "m", "time_ns": 1, "name": "n", "unit": "B", "value": 1.0, "later": 2}
    pl.DataFrame([row]).write_parquet(file)
    assert scan_table(file, "series").collect().columns == ["pass", "time_ns", "name", "unit", "value"]


def test_missing_tables_are_empty(tmp_path: Path) -> None:
    run = build(tmp_path)
    (run.path / "series.parquet").unlink()
    assert run.read("series").is_empty()


@pytest.mark.parametrize(
    ("said", "whose"),
    [
        ("OS can't spawn worker thread: Resource temporarily unavailable (os error 11)", "cannot be read here"),
        ("Worker threads cannot be set to 0", "cannot be read here"),
        ("Too many open files (os error 24)", "cannot be read here"),
        ("parquet: File out of specification: the file is empty", "is damaged"),
    ],
)
def test_a_limit_of_the_system_is_no_damage(said: str, whose: str) -> None:
    told = str(unreadable(Path("run/spans.parquet"), OSError(said)))
    assert told.startswith(f"spans.parquet of this run {whose}") and ("collect again" in told) == (
        whose == "is damaged"
    )


def test_a_folder_that_is_not_utf8_is_named_and_not_called_damaged(tmp_path: Path) -> None:
    run = build(tmp_path / "runs")
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    run.path.rename(odd)
    with pytest.raises(HwprofError, match=r"caf.xe9 is not UTF-8. Try: rename the folder"):
        RunDirectory.open(odd).scan("spans")
