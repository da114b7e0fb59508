"""The pass ``instrumented`` through the command line, as a user runs it."""

from __future__ import annotations

import platform
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.run.repeated_spans import of_all_spans
from tests.support.command import hwprof, hwprof_here, start_hwprof
from tests.support.requirements import require_module

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")

MODEL = """
    import ctypes, os, sys, time, torch
    from pathlib import Path

    def is_followed():
        return "collectors.instrumented.selftest" in sys.modules

    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(3, 32, 3)
            self.second = torch.nn.Conv2d(32, 32, 3)

        def forward(self, x):
            return self.second(self.first(x))

    class Crashing(Small):
        def forward(self, x):
            if is_followed():
                ctypes.string_at(0)
            return super().forward(x)

    class Slow(torch.nn.Module):
        def forward(self, x):
            if is_followed():
                time.sleep(0.05)
                with Path("called").open("a") as file:
                    file.write(".")
            return x + 1

    def small():
        return Small(), torch.rand(1, 3, 64, 64)

    def crashing():
        return Crashing(), torch.rand(1, 3, 64, 64)

    def slow():
        return torch.nn.Sequential(*[Slow() for _ in range(LAYERS)]), torch.rand(1, 3)

    def distrusted():  # one of the loops of the self-test is said to do more than it does
        if "ONEDNN_JIT_PROFILE" in os.environ:
            import msgspec
            from collectors.instrumented import selftest
            loop = selftest.loops()[0]
            wrong = msgspec.structs.replace(loop, each=loop.each | {"instructions": loop.each["instructions"] + 1})
            selftest.loops = lambda: (wrong,)
        return small()

    def unsummed():  # what was counted cannot be added up
        if "ONEDNN_JIT_PROFILE" in os.environ:
            from collectors.instrumented import accounting
            def fail(*_): raise ValueError("lost the sums")
            accounting.add_up = fail
        return small()
"""
LAYERS = 60
PASSES = ("--passes", "measure")


def arguments(folder: Path, model: str, *options: str) -> list[str]:
    require_module("frida")
    (folder / "tiny.py").write_text(textwrap.dedent(MODEL).replace("LAYERS", str(LAYERS)))
    begin = ["collect", "--model", f"tiny:{model}", "--iterations", "2", "--threads", "2"]
    return [*begin, "--output", str(folder / "runs"), *PASSES, *options]


def collect(folder: Path, model: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return hwprof(*arguments(folder, model, *options), cwd=folder, columns=200, environment=environment)


def passes(folder: Path) -> tuple[RunDirectory, dict[str, PassRecord]]:
    run = RunDirectory.latest(folder / "runs")
    return run, {record.name: record for record in run.manifest.passes}


def by_layer(run: RunDirectory, event: str) -> dict[str, int]:
    """Of the pass's leaf layers, over all threads."""
    layers = run.scan("spans").filter((pl.col("pass") == "instrumented") & (pl.col("kind") == "layer"))
    layers = layers.join(run.scan("layers").filter("leaf"), on="path", how="semi")
    counts = run.scan("counts").filter((pl.col("pass") == "instrumented") & (pl.col("event") == event))
    sums = counts.join(layers.select("span", "path"), on="span").group_by("path").agg(pl.col("value").sum())
    return dict(sums.collect().iter_rows())


def test_counts_stand_beside_the_measured_ones(tmp_path: Path) -> None:
    done = collect(tmp_path, "small", "--counters", "instrumented")
    assert done.returncode == 0, done.stderr
    run, records = passes(tmp_path)
    own = records["instrumented"]
    assert (own.status, own.times_from) == ("completed", "measure")
    assert [record.state for record in own.collectors if record.name == "instrumented"] == ["ran"]
    assert not any(record.name == "instrumented" for record in records["measure"].collectors)
    assert [record.warmup for record in own.iterations] == [True, False]
    assert {event.kind for event in own.events} == {"instrumented"}
    flops = by_layer(run, "instrumented.flops-fp32")
    analytic = {"first": 2 * 32 * 27 * 62 * 62, "second": 2 * 32 * 32 * 9 * 60 * 60}
    assert flops == {path: pytest.approx(value, rel=0.05) for path, value in analytic.items()}
    assert "instrumented" in hwprof_here("report", str(run.path), "--all").stdout


def test_kernels_have_one_row_a_name_and_add_up(tmp_path: Path) -> None:
    done = collect(tmp_path, "small", "--counters", "instrumented")
    assert done.returncode == 0, done.stderr
    run, _ = passes(tmp_path)
    kernels = run.read("kernels")
    assert not kernels.select("domain", "library", "name").is_duplicated().any()
    jit = kernels.filter(domain="jit")["name"].drop_nulls().to_list()
    assert jit
    assert not [name for name in jit if name.rpartition(".")[2].isdigit()], "ordinals are this process's alone"
    counts = of_all_spans(run.scan("kernel_counts"), run.scan("repeated_spans")).collect()
    assert set(counts["provenance"]) == {"instrumented"}
    flops = counts.filter(event="instrumented.flops-fp32").group_by("span").agg(pl.col("value").sum())
    layers = run.scan("spans").filter((pl.col("pass") == "instrumented") & (pl.col("kind") == "layer")).collect()
    summed = dict(flops.join(layers, on="span").select("path", "value").iter_rows())
    around = summed.pop("")
    assert summed == by_layer(run, "instrumented.flops-fp32")
    assert around >= sum(summed.values()), "the model's own count has its layers' in it"


@pytest.mark.parametrize("threads", ["1", "8"])
def test_any_number_of_threads(tmp_path: Path, threads: str) -> None:
    """Eight of them on whatever this machine has, each with counters of its own."""
    done = collect(tmp_path, "small", "--counters", "instrumented", "--threads", threads, GOMP_SPINCOUNT="infinity")
    assert done.returncode == 0, done.stderr
    run, records = passes(tmp_path)
    assert records["instrumented"].status == "completed"
    counted = run.scan("counts").filter(pl.col("event") == "instrumented.instructions").select("tid").unique().collect()
    assert counted.height == int(threads)
    assert by_layer(run, "instrumented.flops-fp32")["second"] == pytest.approx(2 * 32 * 32 * 9 * 60 * 60, rel=0.05)


FAILURES = {
    "crashing": "the worker of pass instrumented ended by SIGSEGV",
    "distrusted": "the self-test of counting by instrumenting the code failed: the loop integers has 4014 instructions",
    "unsummed": "ValueError: lost the sums",
}


@pytest.mark.parametrize("model", list(FAILURES))
def test_what_goes_wrong_costs_the_pass_and_not_the_run(tmp_path: Path, model: str) -> None:
    done = collect(tmp_path, model, "--counters", "instrumented")
    assert done.returncode == 1, "it was asked for"
    said = [line for line in done.stderr.splitlines() if FAILURES[model] in line]
    assert len(said) == 1, done.stderr
    assert "Traceback" not in done.stderr
    run, records = passes(tmp_path)
    assert records["measure"].status == "completed"
    assert records["instrumented"].status == "failed"
    assert FAILURES[model] in (records["instrumented"].reason or "")
    assert not run.read("counts").filter(pl.col("event").str.starts_with("instrumented.")).height


def test_what_goes_wrong_unasked_is_recorded_and_no_failure(tmp_path: Path) -> None:
    done = collect(tmp_path, "distrusted", "--counters", "auto")
    assert done.returncode == 0, done.stderr
    run, records = passes(tmp_path)
    if run.manifest.machine.has_core_pmu:
        pytest.skip("where the processor counts, nothing stands in for it")
    assert FAILURES["distrusted"] in (records["instrumented"].reason or "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_the_layers_done(tmp_path: Path, sent: signal.Signals) -> None:
    run = start_hwprof(*arguments(tmp_path, "slow", "--counters", "instrumented"), cwd=tmp_path)
    called = tmp_path / "called"
    deadline = time.monotonic() + 200
    while not called.exists() or called.stat().st_size < 20:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    run.send_signal(sent)
    _, said = run.communicate(timeout=100)
    assert run.returncode == 128 + sent, said
    kept, records = passes(tmp_path)
    own = records["instrumented"]
    assert (own.status, own.kept) == ("interrupted", True)
    assert "of 60 calls of leaf layers" in (own.reason or "")
    done = called.stat().st_size
    instructions = by_layer(kept, "instrumented.instructions")
    assert 20 <= done < LAYERS
    assert len(instructions) == done
    assert min(instructions.values()) > 1000


def test_it_is_left_out_on_request(tmp_path: Path) -> None:
    done = collect(tmp_path, "small", "--no-instrumented")
    assert done.returncode == 0, done.stderr
    assert "instrumented" not in passes(tmp_path)[1]
    done = collect(tmp_path, "small", "--counters", "instrumented", "--no-instrumented")
    assert done.returncode == 2
    assert "contradict each other" in done.stderr
