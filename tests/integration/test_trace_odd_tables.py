"""Traces of tables as no run should have them, in the real trace processor: nothing is lost, nothing misplaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.schema import conform
from tests.support import synthetic_run
from tests.support.traced import FLOWS, Traced


def add_spans(run: RunDirectory, *rows: dict[str, Any]) -> int:
    """Adds spans to the trace pass, with times that count from after all others; returns where that is."""
    spans = run.read("spans")
    offset = int(spans["end_ns"].to_numpy().max()) + 1_000_000
    default = {"pass": "trace", "iteration": 1, "warmup": False, "pid": 4200, "tid": 4200, "kind": "op", "path": "x"}
    made = [
        default
        | {"span": 100_000 + number}
        | row
        | {"begin_ns": row["begin_ns"] + offset, "end_ns": row["end_ns"] + offset}
        for number, row in enumerate(rows)
    ]
    write_table(run.path / "spans.parquet", "spans", pl.concat([spans, conform("spans", pl.DataFrame(made))]))
    return offset


def test_nothing_is_lost_where_slices_overlap(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    add_spans(
        run,
        {"begin_ns": 0, "end_ns": 100, "path": "aten::first"},
        {"begin_ns": 90, "end_ns": 200, "path": "aten::second"},
        {"begin_ns": 95, "end_ns": 300, "path": "aten::third"},
        {"begin_ns": 95, "end_ns": 300, "path": "aten::third"},
        {"begin_ns": 40, "end_ns": 60, "path": "aten::elsewhere", "tid": 4201},
        {"begin_ns": 0, "end_ns": 100, "path": "model.0", "kind": "layer"},
        {"begin_ns": 50, "end_ns": 150, "path": "model.1", "kind": "layer"},
        {"begin_ns": 0, "end_ns": 50, "path": "model.2", "kind": "layer", "tid": 4201},
    )
    traced = Traced(run, tmp_path / "trace.pftrace")
    assert traced.processor.complaints() == []
    assert traced.found() == traced.expected()
    tracks = {
        row["name"]: row["track"]
        for row in traced.slices()
        if row["ts"] - traced.to_boottime > 0 and row["name"].startswith("aten::")
    }
    assert tracks["aten::second"] == "operators of python 4200 (overlap 1) (trace)"
    assert tracks["aten::third"] == "operators of python 4200 (overlap 2) (trace)"
    assert tracks["aten::elsewhere"] == "operators of omp-1 4201 (trace)"
    assert {"layers (overlap 1) (trace)", "layers of omp-1 4201 (trace)"} <= {row["track"] for row in traced.slices()}
    assert any("overlap" in note for note in traced.summary.notes)


def test_slices_without_length_stay_where_they_belong(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    offset = add_spans(
        run,
        {"begin_ns": 0, "end_ns": 100, "path": "outer", "kind": "layer", "span": 500_000},
        {"begin_ns": 0, "end_ns": 0, "path": "outer.a", "kind": "layer", "parent": 500_000},
        {"begin_ns": 10, "end_ns": 90, "path": "outer.b", "kind": "layer", "parent": 500_000},
        {"begin_ns": 100, "end_ns": 100, "path": "outer.c", "kind": "layer", "parent": 500_000},
        {"begin_ns": 100, "end_ns": 200, "path": "next", "kind": "layer"},
    )
    traced = Traced(run, tmp_path / "trace.pftrace")
    since = offset + traced.to_boottime
    found = {
        row["name"]: (row["ts"] - since, row["dur"], row["parent"]) for row in traced.slices() if row["ts"] >= since
    }
    assert found == {
        "outer": (0, 100, None),
        "outer.b": (10, 80, "outer"),
        "outer.a": (0, 0, "outer"),
        "outer.c": (100, 0, "outer"),
        "next": (100, 100, None),
    }
    assert traced.processor.complaints() == []


def test_odd_tables_make_a_whole_trace(tmp_path: Path) -> None:
    """Two passes with one process id, no threads, a counted operator, the root module, a span without length."""
    run = synthetic_run.build(tmp_path)
    run.manifest.passes[1].pid = run.manifest.passes[0].pid
    (run.path / "threads.parquet").unlink()
    offset = add_spans(
        run,
        {"begin_ns": 0, "end_ns": 100, "path": "", "kind": "layer"},
        {"begin_ns": 10, "end_ns": 90, "path": "aten::counted", "input_shapes": "1"},
        {"begin_ns": 95, "end_ns": 95, "path": "aten::instant"},
    )
    count = {"pass": "trace", "iteration": 1, "span": 100_001, "tid": 4200, "event": "cycles", "value": (1 << 62) + 1}
    rows = pl.DataFrame([count | {"enabled_ns": 80, "running_ns": 20, "provenance": "measured"}])
    write_table(run.path / "counts.parquet", "counts", pl.concat([run.read("counts"), conform("counts", rows)]))
    traced = Traced(run, tmp_path / "trace.pftrace")
    assert traced.processor.complaints() == []
    assert len(traced.slices()) == len(run.read("spans"))
    assert traced.processor.value("select count(distinct pid) from process where pid > 0") == 2
    late = {row["name"]: row for row in traced.slices() if row["ts"] >= offset + traced.to_boottime}
    args = traced.args()
    assert args[late["aten::counted"]["arg_set_id"]]["counts.cycles"] == (1 << 62) + 1
    assert args[late["aten::counted"]["arg_set_id"]]["running_share.cycles"] == 0.25
    assert args[late["aten::counted"]["arg_set_id"]]["input_shapes"] == "1"
    assert late["aten::instant"]["dur"] == 0
    arrows = [
        (row["name"], row["target"]) for row in traced.processor.query(FLOWS) if row["ts"] == late["(root)"]["ts"]
    ]
    assert arrows == [("(root)", "aten::counted"), ("(root)", "aten::instant")]
