"""The pass ``instrumented`` through the command line, as a user runs it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest

from hwprof.run.manifest import decode
from tests.requirements import require_module

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is followed on x86-64")

MODEL = """
    import os, signal, torch

    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(3, 32, 3)
            self.second = torch.nn.Conv2d(32, 32, 3)

        def forward(self, x):
            return self.second(self.first(x))

    class Crashing(Small):
        def forward(self, x):
            if "ONEDNN_JIT_PROFILE" in os.environ:
                os.kill(os.getpid(), signal.SIGSEGV)
            return super().forward(x)

    def make(kind):
        return kind(), torch.rand(1, 3, 64, 64)

    def small():
        return make(Small)

    def crashing():
        return make(Crashing)
"""


def collect(folder: Path, model: str, *options: str) -> subprocess.CompletedProcess[str]:
    require_module("frida")
    (folder / "tiny.py").write_text(textwrap.dedent(MODEL))
    command = [sys.executable, "-m", "hwprof", "collect", "--model", f"tiny:{model}", "--iterations", "4"]
    command += ["--threads", "2", "--output", str(folder / "runs"), *options]
    environment = {name: value for name, value in os.environ.items() if name != "ONEDNN_JIT_PROFILE"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_counts_stand_beside_the_measured_ones(tmp_path: Path) -> None:
    done = collect(tmp_path, "small", "--passes", "measure,instrumented")
    assert done.returncode == 0, done.stderr
    run = tmp_path / "runs" / "latest"
    measure, instrumented = decode((run / "run.json").read_bytes()).passes
    assert instrumented.status == "completed"
    assert [record.state for record in instrumented.collectors if record.name == "instrumented"] == ["ran"]
    assert not any(record.name == "instrumented" for record in measure.collectors)
    assert len([record for record in instrumented.iterations if not record.warmup]) == 2
    counts = pl.read_parquet(run / "counts.parquet").filter(pl.col("pass") == "instrumented")
    spans = pl.read_parquet(run / "spans.parquet").filter(pl.col("pass") == "instrumented")
    flops = (
        counts.filter(pl.col("event") == "instrumented.flops-fp32")
        .join(spans.filter(pl.col("kind") == "layer"), on="span")
        .group_by("path", "iteration")
        .agg(pl.col("value").sum())
        .sort("path", "iteration")
    )
    analytic = [2 * 32 * 27 * 62 * 62] * 2 + [2 * 32 * 32 * 9 * 60 * 60] * 2
    assert flops["path"].to_list() == ["first"] * 2 + ["second"] * 2
    assert flops["value"].to_list() == pytest.approx(analytic, rel=0.05)
    names = pl.read_parquet(run / "kernels.parquet")
    by_kernel = pl.read_parquet(run / "kernel_counts.parquet").join(names, on="kernel")
    assert any(name.startswith("jit_") for name in by_kernel.filter(domain="jit")["name"].drop_nulls())
    assert set(by_kernel["provenance"]) == {"instrumented"}


def test_a_crash_costs_the_pass_and_not_the_run(tmp_path: Path) -> None:
    done = collect(tmp_path, "crashing", "--passes", "instrumented,measure")
    assert done.returncode == 1
    assert "the worker of pass instrumented ended by SIGSEGV" in done.stderr
    assert len(done.stderr.strip().splitlines()[-1:]) == 1
    passes = decode((tmp_path / "runs" / "latest" / "run.json").read_bytes()).passes
    assert [(record.name, record.status) for record in passes] == [
        ("instrumented", "failed"),
        ("measure", "completed"),
    ]


def test_the_pass_is_refused_without_its_collector(tmp_path: Path) -> None:
    done = collect(tmp_path, "small", "--passes", "measure,instrumented", "--no-instrumented")
    assert done.returncode == 2
    assert "contradict each other" in done.stderr
