"""A noisy run says so before everything else; what was left out is counted."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.noise import Noise
from hwprof.report.document.stages import Stages
from hwprof.report.json.codec import encode
from tests.support import synthetic_variants as runs
from tests.support.document_parts import part
from tests.support.sampled_report import printed
from tests.support.synthetic_run import build


def test_figures_are_those_of_a_quiet_run(tmp_path: Path) -> None:
    """Two of six timed iterations are four times as long."""
    quiet = builder.build(build(tmp_path / "quiet", iterations=12))
    busy = builder.build(runs.disturbed(tmp_path / "busy"))
    found = part(busy, Noise)
    assert (found.disturbed, found.timed, found.timed_left_out, found.spread) == (2, 4, 2, False)
    assert (part(quiet, Noise).disturbed, part(quiet, Noise).others) == (0, False)
    for name in ("model.0.conv", "model.2"):
        here, there = (layer(document, name).time for document in (busy, quiet))
        assert here is not None and there is not None
        assert abs(here.median_ns / there.median_ns - 1) < 0.05
        assert (here.repetitions, there.repetitions) == (4, 6)
    assert {row.call.repetitions for row in part(busy, Stages).rows if row.call} == {4}


def test_the_numbers_of_disturbed_iterations_are_in_the_json(tmp_path: Path) -> None:
    """Of the pass that figures are from, and of each pass: they are marked in its trace."""
    some, every = (builder.build(runs.disturbed(tmp_path / str(all_), every=all_)) for all_ in (False, True))
    noise, passes = (json.loads(encode(some))[key] for key in ("noise", "passes"))
    assert (noise["disturbed_iterations"], noise["left_out_iterations"]) == ([2, 8], [2, 8])
    assert [entry["disturbed_iterations"] for entry in passes] == [[2, 8], []]
    found = part(every, Noise)
    assert (found.disturbed_iterations, found.left_out_iterations) == (tuple(range(1, 13)), ())


def layer(document: Document, path: str) -> Layer:
    return next(row for row in part(document, Layers).rows if row.path == path)


def test_a_quiet_run_begins_with_the_run(tmp_path: Path) -> None:
    assert printed(builder.build(build(tmp_path)), 120).startswith("run ")


def test_a_noisy_run_says_so_first_and_what_to_do(tmp_path: Path) -> None:
    text = printed(builder.build(runs.disturbed(tmp_path)), 120)
    warning = text[: text.index("\nrun ")]
    assert "2 disturbed" in warning and "4 timed" in warning
    assert "--wait-quiet" in warning
    assert "4 of 6 timed iterations (2 disturbed)" in text


def test_where_all_are_disturbed_none_is_left_out(tmp_path: Path) -> None:
    built = builder.build(runs.disturbed(tmp_path, every=True))
    found = part(built, Noise)
    assert (found.disturbed, found.timed, found.timed_left_out, found.others) == (12, 6, 0, True)
    assert "12 of 12 iterations disturbed" in printed(built, 120)


def test_an_overhead_has_its_error_or_is_none(tmp_path: Path) -> None:
    text = printed(builder.build(build(tmp_path, iterations=12)), 120)
    (line,) = [line for line in text.splitlines() if "counter reads" in line]
    assert "not distinguishable" in line and " points " in line
    (line,) = [line for line in text.splitlines() if "pass trace: inference" in line]
    assert "×1.30 ±" in line


def test_tables_of_times_have_the_minimum_where_there_is_more_than_one(tmp_path: Path) -> None:
    several, single = (
        printed(builder.build(build(tmp_path / str(number), iterations=number)), 120) for number in (6, 2)
    )
    headers = [line.split() for text in (several, single) for line in text.splitlines() if " time ms " in line]
    assert ["min" in header for header in headers] == [True, True, False, False]


def test_shares_say_what_they_are_of_where_medians_do_not_add_up(tmp_path: Path) -> None:
    """In every timed iteration another layer takes ten times as long: no median has any of it, but the whole's."""
    run = build(tmp_path, iterations=12)
    leaves = ["model.0.conv", "model.0.act", "model.1.cv1.conv", "model.1.cv1.act", "model.2"]
    longer = pl.col("begin_ns") + 30_000_000
    for number, iteration in enumerate(range(2, 12, 2)):
        hit = (pl.col("iteration") == iteration) & (pl.col("pass") == "measure")
        one = hit & (pl.col("path") == leaves[number % 5])
        runs.change_table(run, "spans", pl.when(one).then(longer).otherwise("end_ns").alias("end_ns"))
        stage = hit & (pl.col("path") == "inference")
        runs.change_table(run, "spans", pl.when(stage).then(longer).otherwise("end_ns").alias("end_ns"))
    built = builder.build(run)
    assert sum(row.share or 0 for row in part(built, Layers).rows) <= 1
    (note,) = [line for line in printed(built, 120).splitlines() if line.startswith("  share: of the rows' sum")]
    assert " ms" in note
