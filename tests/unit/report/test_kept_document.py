"""The document that is kept with a run: shown while nothing has changed, made anew where something has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl
import pytest

from hwprof.cli import app
from hwprof.errors import HwprofError
from hwprof.hardware import machine
from hwprof.report.csv.files import csv_files
from hwprof.report.document.builder import build
from hwprof.report.document.document import Document
from hwprof.report.files import write_files
from hwprof.report.json import kept
from hwprof.report.json.codec import decode, encode, encode_exactly
from hwprof.run.digests import of_bytes, of_file
from hwprof.run.directory import RunDirectory
from hwprof.run.tables import memory_bytes
from tests.support import synthetic_variants as runs
from tests.support.command import hwprof_here
from tests.support.rounded import is_same
from tests.support.synthetic_run import build as make


def never(*_: object) -> Document:
    raise AssertionError("the document was made anew")


def keep(run: RunDirectory) -> bool:
    return kept.keep(run, build(run), kept.fingerprint(run))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make(tmp_path)


def test_what_is_kept_is_what_would_be_made(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    assert keep(run)
    assert kept.load(run) == kept.document_of(run) == decode(encode_exactly(build(run)))
    assert is_same(kept.load(run), build(run))


def test_tables_made_of_what_is_kept_have_all_digits_too(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    assert keep(run)
    built, again = csv_files(build(run)), csv_files(kept.document_of(run))
    assert built.keys() == again.keys()
    for name, table in built.items():
        table.write(tmp_path / "built.csv")
        again[name].write(tmp_path / "again.csv")
        assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "built.csv").read_bytes(), name


@pytest.mark.parametrize("variant", [runs.sampled, runs.alike, runs.multiplexed, runs.xeon])
def test_every_build_and_what_is_kept_of_it_are_the_same_bytes(
    variant: Callable[[Path], RunDirectory], tmp_path: Path
) -> None:
    run = variant(tmp_path)
    built = [encode(build(run)) for _ in range(3)]
    assert built[0] == built[1] == built[2]
    assert encode(decode(built[0])) == built[0]


def test_the_kept_document_is_shown_and_sorted_without_the_tables(
    run: RunDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.run(["report", str(run.path), "--top", "2"]) == 0
    first = capsys.readouterr().out
    monkeypatch.setattr(kept, "build", never)
    assert app.run(["report", str(run.path), "--top", "2"]) == 0
    assert capsys.readouterr().out == first
    assert app.run(["report", str(run.path), "--sort", "macs", "--top", "1", "--format", "json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert found["hottest"] == {"sort": "macs", "top": 1, "layers": ["model.1.cv1.conv"]}


def _touch(run: RunDirectory) -> None:
    os.utime(run.path / "spans.parquet", ns=(1, 1))


def _change_manifest(run: RunDirectory) -> None:
    run.manifest.passes[0].status = "failed"
    run.save_manifest()


def _another_version(run: RunDirectory) -> None:
    file = run.path / kept.FILE
    file.write_bytes(file.read_bytes().replace(kept.fingerprint(run).encode(), b"0" * 64))


@pytest.mark.parametrize("change", [_touch, _change_manifest, _another_version])
def test_a_change_makes_it_anew(run: RunDirectory, change: Callable[[RunDirectory], None]) -> None:
    keep(run)
    assert kept.load(run) is not None
    change(run)
    assert kept.load(run) is None
    assert kept.document_of(run) == build(run)
    assert kept.load(run) is not None


def test_what_changed_while_the_document_was_made_is_not_kept(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a run is measured meanwhile: the next pass's rows, and then the manifest."""
    ours = encode(build(run))
    keep(run)
    early = RunDirectory.open(run.path)
    early.manifest.passes.pop()
    run.save_manifest()

    assert len(kept.document_of(early).passes) == len(run.manifest.passes) - 1
    assert encode(kept.document_of(RunDirectory.open(run.path))) == ours

    def and_tables(run: RunDirectory) -> Document:
        document = build(run)
        _touch(run)
        return document

    monkeypatch.setattr(kept, "build", and_tables)
    (run.path / kept.FILE).unlink()
    kept.document_of(RunDirectory.open(run.path))
    assert not (run.path / kept.FILE).exists()


def test_a_run_that_changes_is_not_kept_as_what_it_was(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report that opened it before a pass was completed is done after the measuring is."""
    early = RunDirectory.open(run.path)
    early.manifest.passes[-1].status = "running"
    early.save_manifest()

    def slowly(early: RunDirectory) -> Document:
        document = build(early)
        run.save_manifest()
        keep(run)
        return document

    monkeypatch.setattr(kept, "build", slowly)
    kept.document_of(early)
    monkeypatch.setattr(kept, "build", never)
    assert encode(kept.document_of(RunDirectory.open(run.path))) == encode(build(run))


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _without_a_section(data: bytes) -> bytes:
    found = msgspec.json.decode(data)
    found["document"]["layers"] = None
    return msgspec.json.encode(found)


def _of_other_types(data: bytes) -> bytes:
    found = msgspec.json.decode(data)
    found["document"]["layers"]["rows"][0]["path"] = 5
    return msgspec.json.encode(found)


def _with_a_huge_number(data: bytes) -> bytes:
    found = data.replace(b'"calls":', b'"calls":1' + b"0" * 400, 1)
    assert found != data
    return found


def _with_more(data: bytes) -> bytes:
    found = msgspec.json.decode(data)
    found["document"]["made_up"] = {}
    return msgspec.json.encode(found)


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        _without_a_section,
        _of_other_types,
        _with_more,
        _with_a_huge_number,
        lambda _: b"",
        lambda _: b"[" * 100_000,
        lambda _: b"\xff",
    ],
)
def test_a_damaged_or_hostile_file_is_made_anew(run: RunDirectory, damage: Callable[[bytes], bytes]) -> None:
    keep(run)
    file = run.path / kept.FILE
    file.write_bytes(damage(file.read_bytes()))
    assert kept.load(run) is None
    assert kept.document_of(run) == build(run)
    assert kept.load(run) is not None


@pytest.mark.parametrize(
    ("text", "huge"),
    [
        ('{"a":0.000028262509211435413e-10,"b":-1.00000000000000000000000000000000000000000000}', False),
        ('{"a":[1,12345678901234567890]}', True),
        ('{"a": -99999999999999999999999999999999999999999999999999}', True),
        ('{"a":0.000028262509211435413,"b":\n12345678901234567890123456789}', True),
        ('{"12345678901234567890":"x12345678901234567890"}', False),
        ('{"12345678901234567890":12345678901234567890}', True),
        ("{}", False),
    ],
)
def test_a_number_of_more_than_64_bits_is_told_from_long_fractions_and_names(text: str, huge: bool) -> None:
    assert kept.has_huge(text.encode()) is huge


def test_a_table_that_takes_more_memory_than_there_is_is_not_read(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal rows: 200,000 of them are a file of some kilobytes."""
    file = run.path / "series.parquet"
    row = run.read("series").head(1)
    pl.concat([row] * 200_000, rechunk=True).write_parquet(file)
    run.manifest.tables["series"] = [of_file(file)]
    assert file.stat().st_size < 50_000 and memory_bytes(file, "series") > 30e6
    monkeypatch.setattr(machine, "available_bytes", lambda: 20_000_000)
    with pytest.raises(HwprofError, match=r"series\.parquet of this run may take \d+\.\d GB"):
        kept.document_of(run)
    monkeypatch.setattr(machine, "available_bytes", lambda: 0)  # the kernel does not say
    assert kept.document_of(run)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_table_whose_description_is_damaged_is_told_by_us_alone(
    run: RunDirectory, sealed: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars panics at some descriptions of columns (bit 13377 of a file was one), and its threads print that."""
    file = run.path / "threads.parquet"
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)
    if not sealed:
        run.manifest.tables.clear()
    whole = pl.scan_parquet

    def panic(path: str, *, glob: bool, hive_partitioning: bool) -> pl.LazyFrame:
        if not path.endswith("threads.parquet"):
            return whole(path, glob=glob, hive_partitioning=hive_partitioning)
        os.write(2, b"thread '<unnamed>' panicked\n")
        raise pl.exceptions.PanicException("not yet implemented")

    monkeypatch.setattr(pl, "scan_parquet", panic)
    kept.document_of(run)
    with pytest.raises(HwprofError, match=r"threads\.parquet of this run is damaged"):
        run.read("threads")
    assert capfd.readouterr().err == ""


def _of_zeros(value: object) -> object:
    if isinstance(value, dict):
        return {name: _of_zeros(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_of_zeros(one) for one in value]
    return 0.0 if isinstance(value, float) else value


def test_a_kept_document_that_cannot_be_shown_is_made_anew(tmp_path: Path) -> None:
    run = runs.sampled(tmp_path)
    keep(run)
    expected = hwprof_here("report", str(run.path), "--all")
    file = run.path / kept.FILE
    found = msgspec.json.decode(file.read_bytes())
    zeros = msgspec.json.encode(_of_zeros(found["document"]))
    file.write_bytes(msgspec.json.encode(kept.Kept(found["fingerprint"], of_bytes(zeros), msgspec.Raw(zeros))))
    assert kept.load(run) is not None
    shown = hwprof_here("report", str(run.path), "--all")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, expected.stdout, "")


def test_a_run_that_cannot_be_written_is_reported_all_the_same(
    run: RunDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(_: Path) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr(kept, "atomic", read_only)
    assert app.run(["report", str(run.path)]) == 0
    assert "everything: hwprof report --all" in capsys.readouterr().out
    assert not (run.path / kept.FILE).exists()


def test_a_link_to_nowhere_among_the_tables_costs_no_report(run: RunDirectory) -> None:
    keep(run)
    (run.path / "mine.parquet").symlink_to("nowhere")
    done = hwprof_here("report", str(run.path))
    assert done.returncode == 0 and "everything: hwprof report --all" in done.stdout


def test_a_run_that_was_moved_names_its_new_place(run: RunDirectory, tmp_path: Path) -> None:
    keep(run)
    moved = RunDirectory.open(run.path.rename(tmp_path / "moved"))
    found = kept.load(moved)
    assert found is not None and found.run.path == str(tmp_path / "moved")
    assert encode(found) == encode(build(moved))


def test_it_is_shown_though_the_csv_files_that_are_missing_cannot_be_made(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(run)

    def refuse(_: RunDirectory) -> None:
        raise HwprofError("64.0 GB to analyse, and 8.0 GB are free")

    monkeypatch.setattr(kept, "made_anew", refuse)
    assert app.run(["report", str(run.path)]) == 0
    assert "everything: hwprof report --all" in capsys.readouterr().out
    assert not any(run.path.glob("*.csv"))


def test_showing_it_imports_neither_polars_nor_numpy_nor_torch(run: RunDirectory) -> None:
    write_files(run)  # the document, and the CSV files that are missing otherwise
    show = "from hwprof.cli import app; import sys; app.run(['report', sys.argv[1]]);"
    heavy = "print(sorted({'polars', 'numpy', 'torch'} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", show + heavy, str(run.path)], capture_output=True, text=True, check=True
    )
    assert "everything: hwprof report --all" in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"
