"""Models whose iterations are short, and models whose threads are: what the report says of them adds up."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from collectors.perf.collector import PerfCollector
from hwprof.analysis.cpu_time import COARSE, NEW_THREADS, SWITCH_NS
from hwprof.analysis.disturbed import STOLEN_TICK_NS
from hwprof.report.document import builder
from hwprof.report.document.cpu_time import CpuTime
from hwprof.report.document.document import Document
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.layers import Layers
from hwprof.report.document.threads import Threads
from hwprof.report.text import report
from hwprof.run.directory import RunDirectory
from hwprof.session.pass_tables import UNCOUNTED
from tests.support.command import TESTS_MODELS, collect
from tests.support.document_parts import layer_rows, part
from tests.support.models.short import TASKS
from tests.support.requirements import missing, require_module, require_sampler

pytestmark = pytest.mark.alone

MODELS = "tests.support.models.short"


@pytest.fixture(scope="module", autouse=True)
def _needs() -> None:
    require_module("torch")


def measured(place: Path, model: str, threads: int) -> tuple[RunDirectory, Document]:
    available = PerfCollector().availability()
    if not available.ok:
        missing(f"perf events ({available.reason})")
    arguments = ("--model", f"{MODELS}:{model}", "--passes", "measure", "--iterations", "20", "--no-instrumented")
    run = collect(place, *arguments, "--threads", str(threads), environment=TESTS_MODELS)
    return run, builder.build(run)


@pytest.mark.parametrize("threads", [1, 2])
def test_cpu_time_of_short_iterations_is_accounted_for_within_its_error(tmp_path: Path, threads: int) -> None:
    """About a millisecond of work. At context switches counters stand still, and while the hypervisor has a processor
    they run on; what spinning makes of it on a busy machine is CPU time as well. Stolen time is told in ticks: up to
    one more was stolen."""
    run, built = measured(tmp_path, "linears", threads)
    found = part(built, CpuTime)
    assert found.error is not None and found.resolved == (found.error / (found.accounted_for + found.error) <= COARSE)
    iterations = run.read("spans").filter((pl.col("kind") == "iteration") & ~pl.col("warmup"))
    rows = run.read("counts").join(iterations.select("span"), on="span").group_by("iteration", "event")
    by_iteration = rows.agg(pl.col("value").sum()).pivot("event", index="iteration", values="value")
    sums = by_iteration.drop("iteration").sum().row(0, named=True)
    process_ns, error_ns = sums["process-cpu-time"], sums["process-cpu-time-error"]
    assert error_ns < COARSE * process_ns, "then nothing would be shown"
    lost_ns = SWITCH_NS * sums["context-switches"]
    assert process_ns - error_ns - lost_ns <= sums["task-clock"]
    beyond_ns = pl.col("task-clock") - pl.col("process-cpu-time") - pl.col("process-cpu-time-error")
    calm = by_iteration.filter(pl.col("context-switches") == 0).select(beyond_ns=beyond_ns)["beyond_ns"]
    assert calm.is_empty() or calm.median() <= 0, "little is stolen from a millisecond"  # type: ignore[operator]
    assert sums["task-clock"] <= process_ns + error_ns + (run.manifest.passes[0].stolen_ns or 0) + STOLEN_TICK_NS


def test_threads_of_an_iteration_are_what_was_not_counted_of_it(tmp_path: Path) -> None:
    """And the note on it says the same as the account."""
    run, built = measured(tmp_path, "in_turn", 1)
    found = part(built, CpuTime)
    assert found.error is not None and found.accounted_for < 0.5
    (note,) = [note for note in built.notes if "CPU time was not counted" in note]
    assert f"{1 - found.accounted_for:.1%}" in note
    assert UNCOUNTED[NEW_THREADS] in note
    by_event = dict(run.read("counts").group_by("event").agg(pl.col("value").sum()).iter_rows())
    assert by_event["new-threads-cpu-time"] > 0.5 * by_event["process-cpu-time"]


def test_a_layer_that_a_new_thread_calls_has_not_the_counts_of_those_that_wait(tmp_path: Path) -> None:
    _, built = measured(tmp_path, "calls_elsewhere", 1)
    layers = {layer.path: layer for layer in layer_rows(built)}
    helped, first = layers["helped"], layers["first"]
    clock = part(built, Layers).counters.values("task-clock")
    assert helped.path not in clock and "cpus_used" not in helped.metrics
    assert helped.time is not None and helped.uncounted_caller_ns == pytest.approx(helped.time.median_ns, rel=0.5)
    assert first.uncounted_caller_ns is None and clock[first.path] > 0
    console = Console(file=io.StringIO(), width=200)
    report.render(built, console)
    printed = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "counts of helped, inference: called by threads that were not counted yet" in printed


def test_threads_one_after_the_other_do_not_share_their_work(tmp_path: Path) -> None:
    """However long each takes to end: they are as good as one, of the two that were asked for."""
    require_sampler()
    arguments = ("--model", f"{MODELS}:in_turn", "--passes", "trace", "--iterations", "5", "--threads", "2")
    built = builder.build(collect(tmp_path, *arguments, "--collectors", "sampler", environment=TESTS_MODELS))
    sampled = part(built, Kernels)
    (layer,) = [one for one in sampled.layers if one.path == "0"]
    working = [one for one in layer.threads if one.busy_ns > layer.cpu_ns / (TASKS * sampled.iterations) / 2]
    assert len(working) >= TASKS, "then nothing would be shown"
    assert layer.threads_sharing == part(built, Threads).threads_sharing == 2
    assert layer.imbalance is not None and layer.imbalance > 0.8
    assert layer.efficiency is not None and layer.efficiency <= 0.5 + 0.05
