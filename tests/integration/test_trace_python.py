"""Python's functions in the real trace processor: a track a thread, callers around those that they call."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from hwprof.run.details import PythonStacksDetail, as_json
from hwprof.run.directory import write_table
from hwprof.run.manifest import CollectorRecord
from tests.support import synthetic_run
from tests.support.traced import Traced

MAIN, HELPER = 4200, 4999


def test_functions_are_slices_of_their_threads(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    since = run.read("spans").filter(path="iteration 1", **{"pass": "trace"})["begin_ns"].item()
    rows = [
        (MAIN, 0, "main", "/src/app.py", 3, 0, 900),
        (MAIN, 1, "Net.forward", "/src/net.py", 10, 100, 400),
        (MAIN, 1, "Net.forward", "/src/net.py", 12, 400, 800),
        (MAIN, 2, "decode", "/src/net.py", 40, 400, 600),
        (HELPER, 0, "Thread.run", "/lib/threading.py", 5, 300, 700),
    ]
    names = ["tid", "depth", "function", "file", "line", "begin_ns", "end_ns"]
    frames = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        pl.col("begin_ns", "end_ns") * 1000 + since, pid=pl.lit(MAIN), **{"pass": pl.lit("trace")}
    )
    write_table(run.path / "python_frames.parquet", "python_frames", frames)
    detail = as_json(PythonStacksDetail(rate_hz=1e5, frames=frames.height))  # so half of a distance is 5 us
    run.manifest.passes[1].collectors.append(CollectorRecord(name="pyspy", state="ran", detail=detail))
    run.save_manifest()
    traced = Traced(run, tmp_path / "trace.pftrace")
    assert traced.processor.complaints() == []
    args = traced.args()
    found = [
        (row["track"], row["name"], row["parent"], args[row["arg_set_id"]]["place"],
         (row["ts"] - traced.to_boottime - since) // 1000 + 5, row["dur"] // 1000)
        for row in traced.slices() if row["category"] == "python"
    ]  # fmt: skip
    mine, other = "Python functions (trace)", f"Python functions of thread {HELPER} (trace)"
    assert sorted(found) == sorted([
        (mine, "main", None, "/src/app.py:3", 0, 900),
        (mine, "Net.forward", "main", "/src/net.py:10", 100, 700),
        (mine, "decode", "Net.forward", "/src/net.py:40", 400, 200),
        (other, "Thread.run", None, "/lib/threading.py:5", 300, 400),
    ])  # fmt: skip
    assert traced.summary.python_functions == 4
    assert f"{traced.summary.slices + 4:,} slices" in traced.summary.contents()
