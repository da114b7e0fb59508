"""CPUs where much of the process's CPU time was counted of no thread."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hwprof.analysis.cpu_time import TASK_CLOCK
from hwprof.report.document import builder
from hwprof.report.document.layers import Layers
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.process_events import PROCESS_CPU_ERROR, PROCESS_CPU_TIME, WHOLE_PROCESS_TID
from tests.support import synthetic_run


def took(run: RunDirectory, times: float) -> None:
    """By the kernel's account, the process took so many times what its threads were counted with."""
    counts = run.read("counts")
    spans = run.read("spans")
    outer = spans.filter(kind="iteration").select("pass", parent="span")
    stages = spans.filter(kind="stage").join(outer, on=["pass", "parent"], how="semi")
    own = counts.filter(event=TASK_CLOCK).join(stages.select("pass", "span", "parent"), on=["pass", "span"])
    whole = pl.col("value").sum().over("pass", "parent")
    sums = own.with_columns(value=whole, span="parent").unique(["pass", "span"]).drop("parent")
    of_process = [
        sums.with_columns(
            tid=pl.lit(WHOLE_PROCESS_TID, pl.Int32), event=pl.lit(event), value=(pl.col("value") * share).cast(pl.Int64)
        )
        for event, share in ((PROCESS_CPU_TIME, times), (PROCESS_CPU_ERROR, 0.001))
    ]
    rest = counts.filter(~pl.col("event").is_in([PROCESS_CPU_TIME, PROCESS_CPU_ERROR]))
    write_table(run.path / "counts.parquet", "counts", pl.concat([rest, *of_process]))


@pytest.mark.parametrize(("times", "known"), [(1.0, True), (10.0, False)])
def test_cpus_are_dashes_with_the_reason_where_much_was_not_counted(tmp_path: Path, times: float, known: bool) -> None:
    run = synthetic_run.build(tmp_path)
    took(run, times)
    built = builder.build(run)
    layers = built.part(Layers)
    assert layers is not None
    values = [row.metrics.get(name) for row in layers.rows for name in ("cpus_used", "parallel_efficiency")]
    assert any(value is not None for value in values) == known
    (metric,) = [one for one in built.metrics if one.name == "cpus_used"]
    assert (metric.missing is None) == known
    assert metric.missing is None or "90.0%" in metric.missing.reason
