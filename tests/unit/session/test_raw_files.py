"""The tools' own files take no more of the disk than the user wants."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hwprof.run.directory import RunDirectory
from hwprof.session import raw_files
from tests.support.synthetic_run import build

SIZES = {"trace.json.gz": 500, "trace-2.json.gz": 300, "events.txt": 40}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    found = build(tmp_path)
    record = found.manifest.passes[0]
    folder = found.path / "raw" / record.name / record.collectors[0].name
    folder.mkdir(parents=True)
    for name, size in SIZES.items():
        (folder / name).write_bytes(bytes(size))
    return found


def left(run: RunDirectory) -> set[str]:
    return {path.name for path in (run.path / "raw").rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("most_bytes", "dropped"), [(840, []), (839, ["trace.json.gz"]), (339, ["trace.json.gz", "trace-2.json.gz"])]
)
def test_the_largest_go_until_the_rest_is_no_more_than_that(
    run: RunDirectory, most_bytes: int, dropped: list[str]
) -> None:
    before = len(run.manifest.passes[0].collectors[0].notes)
    raw_files.drop_large(run, most_bytes)
    assert left(run) == SIZES.keys() - dropped
    kept = RunDirectory.open(run.path).manifest.passes[0].collectors[0]
    folder = f"raw/{run.manifest.passes[0].name}/{kept.name}"
    assert [note.subject for note in kept.notes[before:]] == [f"{folder}/{name}" for name in dropped]
    assert all("--keep-raw" in str(note) for note in kept.notes[before:])


def test_what_a_link_leads_to_stays(run: RunDirectory, tmp_path: Path) -> None:
    record = run.manifest.passes[0]
    folder = run.path / "raw" / record.name / record.collectors[0].name
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "large").write_bytes(bytes(5000))
    (folder / "link").symlink_to(tmp_path / "mine" / "large")
    (folder / "folder").symlink_to(tmp_path / "mine")
    raw_files.drop_large(run, 0)
    assert (tmp_path / "mine" / "large").stat().st_size == 5000
    assert left(run) == {"link"}


def test_a_name_that_is_no_text_is_told_as_one(run: RunDirectory) -> None:
    """A model's code may put anything there."""
    record = run.manifest.passes[0]
    folder = run.path / "raw" / record.name / record.collectors[0].name
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\x1b[31m")).write_bytes(bytes(1000))
    raw_files.drop_large(run, 840)
    kept = RunDirectory.open(run.path).manifest.passes[0].collectors[0]
    assert kept.notes[-1].subject is not None and kept.notes[-1].subject.endswith("\\udcff\x1b[31m")
    assert left(run) == set(SIZES)


def test_holes_take_no_room(run: RunDirectory) -> None:
    record = run.manifest.passes[0]
    with (run.path / "raw" / record.name / record.collectors[0].name / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    raw_files.drop_large(run, 840)
    assert left(run) == {*SIZES, "sparse"}
