"""A damaged table costs what is made of it, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hwprof.cli import app
from hwprof.report.json import kept
from hwprof.run import digests
from hwprof.run.directory import RunDirectory
from hwprof.run.schema import empty
from tests.support import synthetic_variants as runs

NEEDED = {"spans", "layers"}
"""Without them there is nothing to report."""

SAID = {"damaged", "absent", "notes", "missing", "not_measured", "hottest"}
"""Words about figures."""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = runs.sampled(tmp_path)
    made.manifest.tables = {file.stem: [digests.of_file(file)] for file in made.path.glob("*.parquet")}
    made.save_manifest()
    return made


def spoil(file: Path) -> bytes:
    data = file.read_bytes()
    middle = len(data) // 2
    file.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    return data


def report(run: RunDirectory, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    code = app.run(["report", str(run.path), *options])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_each_table_is_named_and_the_rest_stands(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    whole = report(run, capsys, "--all")
    assert whole[0] == 0 and not whole[2]
    stood = 0
    for file in sorted(run.path.glob("*.parquet")):
        data = spoil(file)
        (run.path / kept.FILE).unlink(missing_ok=True)
        code, out, err = report(run, capsys, "--all")
        assert not (run.path / kept.FILE).exists(), "it would be shown when the table is whole again"
        assert code == 1 and len(err.splitlines()) == 1 and f"{file.name} of this run is damaged" in err, err
        assert bool(out) == (file.stem not in NEEDED), file.name
        stood += bool(out)
        file.write_bytes(data)
    assert stood >= 6
    assert report(run, capsys, "--all") == whole


@pytest.mark.parametrize("table", ["mappings", "module_code"])
def test_a_table_that_only_the_trace_or_another_page_is_made_of_is_told_too(
    run: RunDirectory, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    file = run.path / f"{table}.parquet"
    if not file.exists():
        empty(table).write_parquet(file)
        run.manifest.tables[table] = [digests.of_file(file)]
        run.save_manifest()
    whole = report(run, capsys, "--all")
    os.truncate(file, file.stat().st_size // 2)
    for _ in range(2):
        code, out, err = report(run, capsys, "--all")
        assert (code, out) == (1, whole[1]) and f"{file.name} of this run is damaged" in err


def test_no_figure_that_stands_is_another_one(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is one made up of what the damaged table would have said: where it is not the same it is not there."""
    whole = json.loads(report(run, capsys, "--format", "json")[1])
    for file in sorted(run.path.glob("*.parquet")):
        data = spoil(file)
        (run.path / kept.FILE).unlink(missing_ok=True)
        code, out, _ = report(run, capsys, "--format", "json")
        file.write_bytes(data)
        if not code or file.stem in NEEDED:
            continue
        found = json.loads(out)
        assert [row["path"] for row in found["layers"]["rows"]] == [row["path"] for row in whole["layers"]["rows"]]
        others = {path: pair for path, pair in different(whole, found).items() if pair[1] is not None}
        assert not others, (file.name, others)


def different(one: Any, other: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Numbers that differ, and what is beside them gone; lists by place, where they are as long."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(f"{path}.{name}", one[name], other.get(name)) for name in one if name not in SAID]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{path}[{place}]", *pair) for place, pair in enumerate(zip(one, other, strict=True))]
    else:
        number = isinstance(one, (int, float)) or isinstance(other, (int, float))
        return {path: (one, other)} if number and one != other else {}
    return {at: pair for place in pairs for at, pair in different(place[1], place[2], place[0]).items()}


def test_what_is_kept_of_a_whole_run_needs_no_table(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    whole = report(run, capsys, "--all")
    file = run.path / "samples.parquet"
    status = file.stat()
    spoil(file)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert report(run, capsys, "--all") == whole


def test_no_byte_of_what_is_kept_is_believed_when_it_has_changed(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = report(run, capsys, "--all")
    spoil(run.path / kept.FILE)
    assert report(run, capsys, "--all") == whole


def test_a_table_of_another_size_is_not_read(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without blocks may claim to have terabytes."""
    file = run.path / "samples.parquet"
    os.truncate(file, 4 << 40)
    code, _, err = report(run, capsys, "--all")
    assert code == 1 and f"{file.name} of this run is damaged" in err


def test_digests_of_older_versions_have_no_size(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    whole = report(run, capsys, "--all")
    run.manifest.tables = {
        name: [one.partition(":")[2] for one in known] for name, known in run.manifest.tables.items()
    }
    run.save_manifest()
    assert report(run, capsys, "--all") == whole
    spoil(run.path / "samples.parquet")
    assert report(run, capsys, "--all")[0] == 1
