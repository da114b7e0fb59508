from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.report.csv.energy import domain
from hwprof.report.csv.figures import metric_header
from hwprof.report.csv.files import write_csv_files
from hwprof.report.csv.table import Table
from hwprof.report.document import builder
from hwprof.report.document.energy import Energy
from hwprof.report.document.layers import Layers
from hwprof.report.document.stages import Stages
from tests.support import synthetic_variants as runs
from tests.support.document_parts import layer_rows, part
from tests.support.synthetic_run import build

NAMES = {
    "layers.csv",
    "layer_operators.csv",
    "operators.csv",
    "layer_types.csv",
    "stages.csv",
    "energy.csv",
    "energy_stages.csv",
    "over_time.csv",
    "series.csv",
}


def test_files_hold_the_documents_figures_in_full_precision(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=4)
    built = builder.build(run)
    write_csv_files(run, built)
    assert {path.name for path in run.path.glob("*.csv")} == NAMES
    layers = pl.read_csv(run.path / "layers.csv")
    assert layers["path"].to_list() == [*(layer.path for layer in layer_rows(built)), "unattributed", "whole"]
    counters = part(built, Layers).counters
    for row, layer in zip(layers.iter_rows(named=True), layer_rows(built), strict=False):
        assert layer.time is not None
        assert row["time_median_ns"] == layer.time.median_ns
        assert row["task_clock_ns"] == counters.values("task-clock")[layer.path]
        assert row["task_clock_workers_ns"] == counters.values("task-clock", "workers")[layer.path]
        assert row["cycles_running_ratio"] == 1.0
        assert row["cycles_provenance"] == "measured"
        assert row["gflops_modelled_gflop_per_s"] == layer.metrics.get("gflops")
        assert row["cpi_cycles_per_instruction"] == layer.metrics.get("cpi")
        assert row["cache_mpki_misses_per_1000_instructions"] is None
    steps = pl.read_csv(run.path / "stages.csv")
    assert steps["name"].to_list() == [stage.name for stage in part(built, Stages).rows]
    assert steps["total_ns"].to_list() == [stage.total_ns for stage in part(built, Stages).rows]
    energy = pl.read_csv(run.path / "energy_stages.csv")
    assert energy["energy_joules"].to_list() == [row.joules for row in part(built, Energy).rows]
    assert "power_watts" in energy.columns


def test_calls_of_stages_are_as_pyjoules_writes_them(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=4)
    built = builder.build(run)
    write_csv_files(run, built)
    header = (run.path / "energy.csv").read_text().splitlines()[0]
    assert header.startswith("timestamp;tag;duration;package_0;package_0_error")
    calls = pl.read_csv(run.path / "energy.csv", separator=";")
    by_stage = calls.group_by("tag").agg(pl.col("package_0").sum() / 1e6, pl.col("duration").sum())
    stages = {row.stage: row for row in part(built, Energy).rows if row.zone == "package-0"}
    for stage, joules, seconds in by_stage.iter_rows():
        assert (joules, seconds) == pytest.approx((stages[stage].joules, stages[stage].seconds))
    assert domain("package-1/dram") == "dram_1" and domain("psys") == "psys" and domain("package-x") == "package-x"


def test_every_metric_and_the_flop_check_are_in_the_layer_table(tmp_path: Path) -> None:
    run = runs.xeon(tmp_path)
    built = builder.build(run)
    write_csv_files(run, built)
    layers = pl.read_csv(run.path / "layers.csv")
    for metric in built.metrics:
        header = metric_header(metric)
        assert layers[header].to_list()[0] == layer_rows(built)[0].metrics.get(metric.name), header
        assert "/" not in header and " " not in header and "%" not in header
    conv = layers.row(by_predicate=pl.col("path") == "model.1.cv1.conv", named=True)
    assert (conv["flops_verdict"], conv["flops_analytic"]) == ("winograd", 2 * conv["macs_modelled"])
    assert conv["flops_ratio"] == pytest.approx(conv["flops_counted"] / conv["flops_analytic"])


def test_what_was_not_measured_is_an_empty_cell_under_its_header(tmp_path: Path) -> None:
    run = runs.without_pmu(tmp_path)
    write_csv_files(run, builder.build(run))
    header, *rows = (run.path / "layers.csv").read_text().splitlines()
    place = header.split(",").index("cpi_cycles_per_instruction")
    assert all(row.rsplit(",", header.count(",") - place)[1 if place < header.count(",") else 0] == "" for row in rows)
    assert (run.path / "energy_stages.csv").read_text().startswith("zone,stage,windows,duration_seconds,energy_joules,")


def test_a_section_without_a_part_has_no_file(tmp_path: Path) -> None:
    run = runs.without_passes(tmp_path)
    write_csv_files(run, builder.build(run))
    assert not list(run.path.glob("*.csv"))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = build(tmp_path)
    built = builder.build(run)
    write_csv_files(run, built)
    before = (run.path / "layers.csv").read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Table, "write", fail)
    with pytest.raises(OSError, match="disk full"):
        write_csv_files(run, built)
    assert (run.path / "layers.csv").read_bytes() == before
    assert not list(run.path.glob(".*.part"))


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(
    st.lists(
        st.tuples(
            st.none() | TEXTS,
            st.none() | st.floats(allow_nan=False),
            st.none() | st.integers(-(2**60), 2**60),
            st.none() | st.booleans(),
        ),
        min_size=1,
    )
)
def test_whatever_cells_hold_is_read_again(
    rows: list[tuple[str | None, float | None, int | None, bool | None]],
) -> None:
    """By Python's own reader: names with quotes, commas and line breaks too."""
    columns = dict(zip(('name, "x"', "figure", "number", "flag"), map(list, zip(*rows, strict=True)), strict=True))
    with TemporaryDirectory() as folder:
        Table(columns).write(path := Path(folder) / "t.csv")
        with path.open(encoding="utf-8", newline="") as file:
            header, *found = csv.reader(file)
    assert header == list(columns)
    expected = [
        tuple("" if cell is None else str(cell).lower() if isinstance(cell, bool) else cell for cell in row)
        for row in rows
    ]
    read = [(one[0], float(one[1]) if one[1] else "", int(one[2]) if one[2] else "", one[3]) for one in found]
    assert read == expected


def test_a_text_without_a_letter_is_an_empty_cell(tmp_path: Path) -> None:
    Table({"path": ["", None, "a"], "figure": [1.0, None, 0.5]}).write(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "path,figure\n,1.0\n,\na,0.5\n"


def test_whole_numbers_have_no_point_and_truth_is_spelt_as_in_the_json(tmp_path: Path) -> None:
    columns: dict[str, list[object]] = {
        "counts": [12.0, -0.0, 4e15, 7.0, None],
        "figures": [12.0, 0.25, None, 1.0, 2.0],
        "mixed": [12, 3.0, 0.5, None, True],
        "flag": [True, False, None, None, True],
    }
    Table(columns).write(tmp_path / "t.csv")
    rows = list(csv.reader((tmp_path / "t.csv").open()))[1:]
    assert [row[0] for row in rows] == ["12", "0", "4000000000000000", "7", ""]
    assert [row[1] for row in rows] == ["12.0", "0.25", "", "1.0", "2.0"], "of which the first rows tell the type"
    assert [row[2] for row in rows] == ["12", "3", "0.5", "", "true"]
    assert [row[3] for row in rows] == ["true", "false", "", "", "true"]


@given(st.floats(allow_nan=False))
def test_a_figure_has_every_digit(value: float) -> None:
    with TemporaryDirectory() as folder:
        Table({"figure": [value]}).write(path := Path(folder) / "t.csv")
        text = path.read_text().split()[1]
    assert float(text) == value and not text.endswith(".0")
