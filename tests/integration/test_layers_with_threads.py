"""Counts of a layer whose work is done by a thread that begins in it, on which no counter was open."""

from __future__ import annotations

from pathlib import Path

from hwprof.report.document import builder
from hwprof.report.document.layers import Layers
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
