"""Pages say where the tools' own files lie: those that the run names, and has."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hwprof.report.document import builder
from hwprof.report.document.raw_files import raw_files
from hwprof.report.pages import PAGES
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from hwprof.report.text.raw_files import where
from hwprof.run.details import CallsDetail, LineCostsDetail, PythonStacksDetail, as_json, own_files
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CollectorRecord, PassRecord
from hwprof.run.notes import Note, NoteKind
from hwprof.run.roles import Role
from hwprof.run.schema import conform
from tests.support.synthetic_run import build

PAUSED = Note(NoteKind.SUSPECT, "it fell behind by up to 1.05 s", "Python stacks", "a lower rate")

PLACE = {"function": "forward", "file": "/net.py", "line": 7}
FRAME = PLACE | {"pid": 4200, "tid": 4200, "depth": 0}
CALL = PLACE | {"stage": "inference", "calls": 3, "primitive_calls": 3, "self_ns": 1000, "cumulative_ns": 1000}
LINE = (
    PLACE
    | {"python_share": 0.9, "samples": 50, "allocated_bytes": 1 << 20, "peak_bytes": 1 << 20}
    | dict.fromkeys(("native_share", "system_share", "core_utilization"), 0.0)
    | dict.fromkeys(("python_allocated_share", "copy_bytes_per_s"), 0.0)
)
DETAILS = {
    "python": PythonStacksDetail(rate_hz=1e5, frames=1),
    "lines": LineCostsDetail(version="2", command=[], elapsed_s=4.1, samples=50, file="own.json.gz", html="own.html"),
    "cprofile": CallsDetail(version="3.11", iterations=3, files=["inference.prof", "all-stages.prof"]),
    "operators": None,
}
ROLES = {"python": Role.PYTHON, "lines": Role.LINES, "cprofile": Role.CALLS, "operators": Role.OPERATORS}


def run_with(page: str, root: Path) -> RunDirectory:
    """Somebody brought what the page shows, in the pass ``trace``."""
    run = build(root)
    spans = run.read("spans").filter(path="inference", **{"pass": "trace"})
    begin_ns, end_ns = spans.select("begin_ns", "end_ns").row(0)
    rows: dict[str, dict[str, Any]] = {
        "python_line_costs": LINE,
        "python_calls": CALL,
        "python_frames": FRAME | {"begin_ns": begin_ns, "end_ns": end_ns},
    }
    table = {"python": "python_frames", "lines": "python_line_costs", "cprofile": "python_calls"}.get(page)
    if table is not None:
        frame = conform(table, pl.DataFrame([rows[table] | {"pass": "trace"}]))
        write_table(run.path / f"{table}.parquet", table, frame)
    detail = as_json(DETAILS[page]) or {"kind": "operators"}
    if page in ("python", "operators"):
        detail["file"] = "trace.json"
    trace = run.manifest.passes[1]
    trace.collectors = [one for one in trace.collectors if one.role is not ROLES[page]]
    trace.collectors.append(
        CollectorRecord(name="looker", state="ran", role=ROLES[page], detail=detail, notes=[PAUSED])
    )
    run.save_manifest()
    return run


def leave(run: RunDirectory, *names: str) -> None:
    folder = run.path / "raw" / "trace" / "looker"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"{}")


def printed(run: RunDirectory, name: str) -> str:
    document = builder.build(RunDirectory.open(run.path))
    page = next(one for one in PAGES if one.name == name)
    text = io.StringIO()
    page.text.show(page.document.select(document, 5), Page(document, make_console(200, text)))
    return text.getvalue()


@pytest.mark.parametrize(
    ("page", "left", "told"),
    [
        ("python", ["trace.json"], "raw/trace/looker/trace.json"),
        ("operators", ["trace.json"], "raw/trace/looker/trace.json"),
        ("lines", ["own.json.gz", "own.html"], "raw/trace/looker/own.json.gz, own.html"),
        ("lines", ["own.html"], "raw/trace/looker/own.html"),
        ("cprofile", ["inference.prof", "all-stages.prof"], "raw/trace/looker/inference.prof, all-stages.prof"),
    ],
)
def test_a_page_says_where_the_files_lie(page: str, left: list[str], told: str, tmp_path: Path) -> None:
    run = run_with(page, tmp_path)
    assert "raw data" not in printed(run, page), "none is there"
    leave(run, *left)
    assert f"raw data: {told}, in the run's folder" in printed(run, page)


def test_the_page_of_python_has_the_notes_of_who_looked(tmp_path: Path) -> None:
    told = "Python stacks: it fell behind by up to 1.05 s. Try: a lower rate"
    run = run_with("python", tmp_path)
    assert told in printed(run, "python")
    assert f"looker: {told}" in builder.build(run).notes


@pytest.mark.parametrize("name", ["", "..", "../../secret", "/etc/passwd", "a\0b", "\ud800", "folder"])
def test_what_lies_elsewhere_is_no_file_of_the_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"")
    (tmp_path / "raw" / "trace" / "looker" / "folder").mkdir(parents=True)
    record = PassRecord(name="trace")
    record.collectors = [CollectorRecord(name="looker", state="ran", role=Role.LINES, detail={"file": name})]
    assert raw_files(tmp_path, record, Role.LINES) == []


@pytest.mark.parametrize("detail", [{}, {"file": 3}, {"files": "x"}, {"files": [None]}, {"html": {}}])
def test_a_detail_that_names_no_files_has_none(detail: dict[str, Any]) -> None:
    assert own_files(detail) == []


def test_many_files_are_counted() -> None:
    assert where([]) == []
    assert where([f"raw/a/b/{number}" for number in range(9)]) == [
        "raw data: raw/a/b/0, 1, 2 and 6 more, in the run's folder"
    ]
