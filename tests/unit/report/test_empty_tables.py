"""A table without rows, whole or of one pass, is a report and a trace all the same: nothing rests on the type of a
column that has no value in it."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from hwprof.report.csv.files import write_csv_files
from hwprof.report.document.builder import build
from hwprof.report.json.codec import decode, encode
from hwprof.report.text.report import render
from hwprof.run.directory import RunDirectory
from hwprof.run.schema import TABLES
from hwprof.trace.writer import write_trace
from tests.support import synthetic_samples
from tests.support import synthetic_variants as runs

PASSES = ("measure", "trace", "instrumented")
KINDS = ("iteration", "stage", "layer", "op", "region")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all passes with every table."""
    run = runs.sampled_without_pmu(tmp_path_factory.mktemp("everything"))
    synthetic_samples.add_primitives(run)
    return run.path


def reported(path: Path) -> None:
    """All that is made of a run is made of this one."""
    run = RunDirectory.open(path)
    document = build(run)
    assert encode(decode(encode(document))) == encode(document)
    console = Console(file=io.StringIO(), width=80)
    render(document, console)
    write_csv_files(run, document)
    write_trace(run, path / "trace.pftrace")


def emptied(everything: Path, place: Path, table: str, gone: pl.Expr) -> Path:
    """A copy with those rows gone."""
    path = place / "run"
    shutil.copytree(everything, path)
    run = RunDirectory.open(path)
    runs.change_table(run, table, None, ~gone)
    return path


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rows(everything: Path, tmp_path: Path, table: str) -> None:
    reported(emptied(everything, tmp_path, table, pl.lit(True)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PASSES)
def test_a_pass_without_spans_of_a_kind(everything: Path, tmp_path: Path, name: str, kind: str) -> None:
    reported(emptied(everything, tmp_path, "spans", pl.col("pass").eq(name) & pl.col("kind").eq(kind)))


@pytest.mark.parametrize("name", PASSES)
def test_layers_that_are_no_leaves(everything: Path, tmp_path: Path, name: str) -> None:
    """As where all of the work is in functions."""
    leaves = RunDirectory.open(everything).read("layers").filter("leaf")["path"]
    reported(emptied(everything, tmp_path, "spans", pl.col("pass").eq(name) & pl.col("path").is_in(leaves.implode())))
