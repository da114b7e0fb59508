"""run.json from anywhere: what it cannot be is told in one line, at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hwprof.errors import HwprofError
from hwprof.run import directory
from hwprof.run.directory import RunDirectory
from tests.support.command import hwprof_here
from tests.support.odd_files import device, fifo
from tests.support.synthetic_run import build
from tests.support.synthetic_variants import zen

NOT_MANIFESTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "nested": (lambda file: file.write_text("[" * 100_000), "damaged"),
    "nested below": (lambda file: file.write_text('{"x":' + "[" * 100_000), "damaged"),
    "no text": (lambda file: file.write_bytes(b'{"name": "\xff\xfe"}'), "damaged"),
    "empty": (lambda file: file.write_bytes(b""), "damaged"),
    "pipe": (fifo, "no regular file"),
    "device": (device, "no regular file"),
}


@pytest.mark.parametrize("kind", NOT_MANIFESTS)
def test_what_is_no_manifest_is_told_at_once(tmp_path: Path, kind: str) -> None:
    run = build(tmp_path)
    spoil, why = NOT_MANIFESTS[kind]
    spoil(run.path / "run.json")
    done = hwprof_here("report", str(run.path))
    assert done.returncode == 1
    assert why in done.stderr and "defect of hwprof" not in done.stderr


def test_the_latest_run_is_one_that_can_be_opened(tmp_path: Path) -> None:
    run = build(tmp_path)
    (tmp_path / "later").mkdir()
    os.mkfifo(tmp_path / "later" / "run.json")
    assert RunDirectory.latest(tmp_path).path == run.path


def test_a_manifest_is_not_read_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = build(tmp_path)
    monkeypatch.setattr(directory, "LARGEST_MANIFEST", 100)
    with pytest.raises(HwprofError, match="more than the 100 that are read"):
        RunDirectory.open(run.path)


def test_a_newer_run_is_newer_and_not_damaged(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema_version": 99, "hwprof_version": "7.0", "passes": "other"}))
    with pytest.raises(HwprofError, match=r"written by hwprof 7\.0, which is newer"):
        RunDirectory.open(tmp_path)


def test_no_version_is_below_the_first(tmp_path: Path) -> None:
    run = build(tmp_path)
    file = run.path / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": -1}))
    with pytest.raises(HwprofError, match="schema_version"):
        RunDirectory.open(run.path)


@pytest.mark.parametrize("formula", ["cycles cycles (", "nonsense + 1", "(SELECT 1)", "'a'"])
def test_a_formula_that_is_none_is_damage(tmp_path: Path, formula: str) -> None:
    run = zen(tmp_path)
    file = run.path / "run.json"
    manifest = json.loads(file.read_text())
    for record in manifest["passes"]:
        for metric in record["metrics"]:
            if metric["name"] == "cpi":
                metric["formula"] = formula
    file.write_text(json.dumps(manifest))
    done = hwprof_here("report", str(run.path))
    assert done.returncode == 1
    assert "formula of the metric cpi in run.json is damaged" in done.stderr


@pytest.mark.parametrize(
    ("place", "number"),
    [
        (("passes", 0, "end_ns"), 10**400),
        (("passes", 0, "begin_ns"), -1),
        (("clock", "monotonic_ns"), -(2**63)),
        (("clock", "realtime_ns"), 2**63 - 1),
        (("workload", "options", "made up"), [{"x": -(10**30)}]),
        (("workload", "threads"), 10**18),
        (("workload", "threads"), -1),
        (("passes", 0, "iterations", 0, "event_set"), 10**18),
    ],
)
def test_a_number_that_no_table_holds_is_damage(tmp_path: Path, place: tuple[str | int, ...], number: object) -> None:
    run = build(tmp_path)
    file = run.path / "run.json"
    manifest = json.loads(file.read_text())
    found = manifest
    for key in place[:-1]:
        found = found[key]
    found[place[-1]] = number
    file.write_text(json.dumps(manifest))
    with pytest.raises(HwprofError, match=r"run\.json is damaged"):
        RunDirectory.open(run.path)
