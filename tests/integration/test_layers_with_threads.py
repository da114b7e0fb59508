"""Counts of a layer whose work is done by a thread that begins in it, on which no counter was open."""

from __future__ import annotations

from pathlib import Path

from hwprof.report.document import builder
from hwprof.report.document.layers import Layers
from hwprof.report.document.memory import Memory
from tests.support.command import TESTS_MODELS, collect, hwprof
from tests.support.document_parts import part


def test_a_layer_that_a_thread_of_its_own_works_for_has_no_counts_and_says_why(tmp_path: Path) -> None:
    model = ("--model", "tests.support.models.layers_with_threads:model", "--iterations", "6", "--no-sampler")
    run = collect(tmp_path, *model, "--passes", "measure", "--counters", "perf", environment=TESTS_MODELS)
    rows = {row.path: row for row in part(builder.build(run), Layers).rows}
    plain, helped = rows["0"], rows["1"]
    assert plain.uncounted_ns is None
    assert helped.uncounted_ns is not None and helped.time is not None
    assert 0.2 * helped.time.median_ns < helped.uncounted_ns < 1.5 * helped.time.median_ns
    assert "page_faults" in plain.metrics and not {"page_faults", "balance", "cpus"} & set(helped.metrics)
    told = hwprof("report", "--all", str(run.path), "--width", "120")
    assert "counts of 1, inference: code that is not counted ran there (up to" in told.stdout


def test_memory_that_a_thread_of_a_layers_own_allocates_is_no_figure_instead_of_nothing(tmp_path: Path) -> None:
    model = ("--model", "tests.support.models.layers_with_threads:model", "--iterations", "6")
    run = collect(tmp_path, *model, "--passes", "measure,trace", "--no-pyspy", environment=TESTS_MODELS)
    memory = part(builder.build(run), Memory)
    plain, helped = (next(row for row in memory.rows if row.path == path) for path in ("0", "1"))
    assert plain.allocated_bytes == 64 * 512 * 4
    assert (helped.allocated_bytes, helped.kept_bytes, helped.peak_bytes, helped.fresh) == (None,) * 4
    assert memory.unseen == ("1",) and memory.whole is not None and memory.whole.allocated_bytes is None
    told = hwprof("report", "--memory", str(run.path), "--width", "120")
    assert "what torch allocates is not known: in 1 threads of the model's own worked" in told.stdout
    assert "nobody sees what they allocate" in told.stdout
