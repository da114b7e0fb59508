"""Writing a trace takes no more memory for a run with four times the operators."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.schema import conform
from tests.support import synthetic_run

OPERATORS: Final = 300_000
PROGRAM: Final = """
import sys
from pathlib import Path
from hwprof.run.directory import RunDirectory
from hwprof.trace.writer import write_trace
run = RunDirectory.open(Path(sys.argv[1]))
assert write_trace(run, run.path / "trace.pftrace", limit=10_000_000).slices > int(sys.argv[2])
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line[:5] == "VmHWM"))
"""


def run_with(root: Path, operators: int) -> RunDirectory:
    """A run with so many operators, two deep, after everything else."""
    run = synthetic_run.build(root)
    spans = run.read("spans")
    number = pl.int_range(operators, dtype=pl.Int64)
    begin_ns = int(spans["end_ns"].to_numpy().max()) + 1_000 + number // 2 * 5_000 + number % 2 * 100
    more = pl.select(
        pl.lit("trace").alias("pass"),
        iteration=0,
        warmup=False,
        span=1_000_000 + number,
        pid=4200,
        tid=4200,
        kind=pl.lit("op"),
        path="aten::operator_" + (number % 70).cast(pl.String),
        begin_ns=begin_ns,
        end_ns=begin_ns + 4_000 - number % 2 * 500,
        input_shapes="1x" + (number % 300).cast(pl.String) + "x20x20",
    )
    write_table(run.path / "spans.parquet", "spans", pl.concat([spans, conform("spans", more)]))
    return run


def peak_kb(run: RunDirectory, operators: int) -> int:
    """Of a fresh process that writes the run's trace."""
    command = [sys.executable, "-c", PROGRAM, str(run.path), str(operators)]
    return int(subprocess.check_output(command, text=True))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_peak_memory_does_not_grow_with_the_operators(tmp_path: Path) -> None:
    small = peak_kb(run_with(tmp_path / "small", OPERATORS), OPERATORS)
    large = peak_kb(run_with(tmp_path / "large", 4 * OPERATORS), 4 * OPERATORS)
    assert large < 1.4 * small, f"{small} kB, {large} kB"  # the analysis holds who called what, 100 bytes an operator
