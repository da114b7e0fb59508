"""What a document lists of a run with many operators and kernels, and that nothing large is missing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hwprof.analysis.instrumented_pass import LEAST_OF_LAYER, PER_LAYER
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.report.csv.files import csv_files
from hwprof.report.document.builder import build
from hwprof.report.document.document import Document
from hwprof.report.document.hot_kernels import select
from hwprof.report.document.instrumented import Instrumented
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.layers import Layers
from hwprof.report.document.operators import LEAST_SELF, Operators
from hwprof.report.json.codec import encode
from hwprof.run.directory import RunDirectory
from tests.support.document_parts import part

RUN = Path(__file__).parents[2] / "fixtures" / "kept_runs" / "yolov8n"


@pytest.fixture(scope="module")
def document() -> Document:
    return build(RunDirectory.open(RUN))


def test_small_operators_are_counted_and_not_listed(document: Document) -> None:
    table, _ = RunAnalysis(RunDirectory.open(RUN)).operators.table or (pl.DataFrame(), None)
    found = part(document, Operators)
    assert found.combinations == table.height > len(found.rows) > 20
    assert found.self_ns == table["self_ns"].sum()
    assert [row.self_ns for row in found.rows] == table.filter(pl.col("share") >= LEAST_SELF)["self_ns"].to_list()


def test_of_a_layer_its_largest_kernels_are_listed(document: Document) -> None:
    (found,) = part(document, Instrumented).passes
    layers: dict[str, list[float]] = {}
    for kernel in found.kernels:
        if kernel.layer is not None:
            layers.setdefault(kernel.layer, []).append(kernel.share or 0.0)
    known = {row.path for row in part(document, Layers).rows if row.metrics.get("counted_flops") is not None}
    assert known and known <= layers.keys(), "each has its largest, however small that is"
    assert all(min(shares[1:], default=1.0) >= LEAST_OF_LAYER for shares in layers.values())
    assert max(map(len, layers.values())) in range(2, PER_LAYER + 1)


def test_full_names_are_told_once_and_known_of_every_row(document: Document) -> None:
    found = part(document, Kernels)
    named = {(row.kernel, row.library): row.full_name for row in found.kernels if row.layer is None and row.full_name}
    pairs = zip(found.kernels, found.with_names(), strict=True)
    of_layers = [pair for pair in pairs if pair[0].layer and (pair[0].kernel, pair[0].library) in named]
    without = [row for row, _ in of_layers if row.full_name is None]
    assert len(without) > len(of_layers) / 2
    for told, restored in of_layers:
        name = named[told.kernel, told.library]
        assert restored.full_name == (told.full_name or name) and told.full_name != name
    rows = pl.DataFrame(csv_files(document)["kernels_sampled.csv"].columns)
    assert rows.filter(pl.col("full_name").is_in([*named.values()])).height == len(named) + len(without)
    listed = [row for one in select(document, 5).kernels for row in one.layers]
    assert {row.full_name for row in listed} & {*named.values()}


def test_what_is_0_for_every_thread_is_told_once(document: Document) -> None:
    rows = part(document, Layers).rows
    parts = [row.by_thread for row in rows]
    assert any(parts) and all(one.main or one.workers for row in parts for one in row.values())
    told = set().union(*parts)
    zeros = [(row, name) for row in rows for name, value in row.metrics.items() if value == 0 and name in told]
    assert zeros and not any(name in row.by_thread for row, name in zeros)


def test_rows_of_samples_hold_no_nulls(document: Document) -> None:
    kernels = encode(document).partition(b'"kernels":[{')[2].partition(b'"threads":{')[0]
    assert b'"samples":' in kernels and b'"cpi":null' not in kernels and b'"full_name":null' not in kernels
