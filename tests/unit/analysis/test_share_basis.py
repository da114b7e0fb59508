"""Shares where layers take long in turn: by medians one that takes a fifth of the time would have nearly all of it."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from hwprof.analysis.layers import shares
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.analysis.share_basis import UNEVEN, is_uneven
from hwprof.report.document import builder
from hwprof.report.document.hot_roofline import select
from hwprof.report.text import figures, first_layers, hot_roofline
from hwprof.report.text.alike_layers import Alike
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory
from tests.support import synthetic_variants as runs
from tests.support.synthetic_run import build

LONG_NS = 50_000_000


@pytest.fixture
def in_turn(tmp_path: Path) -> RunDirectory:
    """Each iteration another leaf takes fifty milliseconds more, and so do the inference and the iteration."""
    run = build(tmp_path, iterations=10)
    spans = run.read("spans").filter((pl.col("pass") == "measure") & ~pl.col("warmup"))
    leaves = run.read("layers").filter("leaf")["path"].to_list()
    for number, iteration in enumerate(sorted(spans["iteration"].unique())):
        mine = (pl.col("iteration") == iteration) & (pl.col("pass") == "measure")
        slow = mine & (pl.col("path") == leaves[number % len(leaves)])
        whole = mine & (pl.col("kind").is_in(["stage", "iteration"]) | (pl.col("path") == ""))
        longer = pl.when(slow | whole).then(pl.col("end_ns") + LONG_NS).otherwise("end_ns")
        runs.change_table(run, "spans", longer.alias("end_ns"))
    return run


def test_shares_are_of_means_where_medians_say_next_to_nothing(in_turn: RunDirectory) -> None:
    analysis = RunAnalysis(in_turn)
    measured = analysis.measured
    assert measured is not None
    rows = analysis.figures.layers.rows if analysis.figures is not None else pl.DataFrame()
    found = dict(rows.select("owner", "share").iter_rows())
    parts = {owner: share for owner, share in found.items() if owner != WHOLE and share is not None}
    assert sum(parts.values()) == pytest.approx(1)
    means = dict(rows.select("owner", pl.col("time_mean_ns") * pl.col("iterations")).iter_rows())
    total = sum(means[owner] or 0 for owner in parts)
    for owner, share in parts.items():
        assert share == pytest.approx((means[owner] or 0) / total, abs=1e-9), owner
    again = dict(shares(rows.select("owner").filter(pl.col("owner") != WHOLE), measured.attribution).iter_rows())
    assert {owner: again[owner] for owner in parts} == pytest.approx(parts)
    assert UNATTRIBUTED in parts


def test_times_beside_shares_of_means_are_means(in_turn: RunDirectory) -> None:
    document = builder.build(in_turn, 8)
    page = Page(document, make_console(120, io.StringIO()))
    rows = [Alike([one]) for one in page.hottest()]
    columns = {one.header: one.cells for one in first_layers.columns(rows, page)}
    assert "ms" not in columns
    assert columns["mean ms"] == [
        figures.milliseconds(one.time.mean_ns) for one in page.hottest() if one.time is not None
    ]


def test_times_on_the_page_of_the_roofline_are_means_where_shares_are(in_turn: RunDirectory, tmp_path: Path) -> None:
    for run, of_means in ((in_turn, True), (build(tmp_path / "usual", iterations=4), False)):
        run.manifest.peaks = runs.under_roofs(tmp_path / f"peaks-{of_means}").manifest.peaks
        document = builder.build(run)
        said = io.StringIO()
        hot_roofline.show(select(document, 8), Page(document, make_console(200, said)))
        assert (" mean ms " in said.getvalue()) is of_means
        assert ("ms, share: of mean times; GFLOP/s, of roof: by median times" in said.getvalue()) is of_means
        time = next(one.time for one in document.parts["layers"].rows if one.path == "model.0.conv")  # type: ignore[attr-defined]
        taken = time.mean_ns if of_means else time.median_ns
        row = next(line.split() for line in said.getvalue().splitlines() if " model.0.conv " in line)
        assert figures.milliseconds(taken) in row


def test_usual_runs_are_not_uneven(tmp_path: Path) -> None:
    rows = RunAnalysis(build(tmp_path, iterations=4)).figures
    assert rows is not None
    table = rows.layers.rows.filter(pl.col("owner") != WHOLE)
    medians = table["time_median_ns"] * table["iterations"]
    assert table["share"].to_list() == pytest.approx((medians / medians.sum()).to_list())


@pytest.mark.parametrize(
    ("sum_ns", "uneven"), [(100, False), (100 * (1 - UNEVEN) + 1, False), (69, True), (131, True), (129, False)]
)
def test_how_far_is_far(sum_ns: float, uneven: bool) -> None:
    assert is_uneven(sum_ns, 100) == uneven
