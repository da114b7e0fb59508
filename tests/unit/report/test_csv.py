from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hwprof.report.csv import tables
from hwprof.report.document import document
from tests.support import synthetic_variants as runs
from tests.support.synthetic_run import build

NAMES = {"layers.csv", "layer_types.csv", "steps.csv", "energy.csv"}


def test_files_hold_the_documents_figures_in_full_precision(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=4)
    built = document.build(run)
    tables.write_csv_files(run, built)
    assert {path.name for path in run.path.glob("*.csv")} == NAMES
    layers = pl.read_csv(run.path / "layers.csv")
    assert layers["path"].to_list() == [*(layer.path for layer in built.layers), "unattributed", "whole"]
    for row, layer in zip(layers.iter_rows(named=True), built.layers, strict=False):
        assert layer.time is not None
        assert row["time_median_ns"] == layer.time.median_ns
        assert row["task_clock_ns"] == layer.counters["task-clock"].value
        assert row["task_clock_workers_ns"] == layer.counters["task-clock"].workers
        assert row["cycles_running_ratio"] == 1.0
        assert row["cycles_provenance"] == "measured"
        assert row["gflops_modelled_gflop_per_s"] == layer.metrics["gflops"]
        assert row["cpi_cycles_per_instruction"] == layer.metrics["cpi"]
        assert row["cache_mpki_misses_per_1000_instructions"] is None
    steps = pl.read_csv(run.path / "steps.csv")
    assert steps["name"].to_list() == [stage.name for stage in built.stages]
    assert steps["total_ns"].to_list() == [stage.total_ns for stage in built.stages]
    energy = pl.read_csv(run.path / "energy.csv")
    assert energy["energy_joules"].to_list() == [row.joules for row in built.energy]
    assert "power_watts" in energy.columns


def test_every_metric_and_the_flop_check_are_in_the_layer_table(tmp_path: Path) -> None:
    run = runs.xeon(tmp_path)
    built = document.build(run)
    tables.write_csv_files(run, built)
    layers = pl.read_csv(run.path / "layers.csv")
    for metric in built.metrics:
        header = tables.metric_header(metric)
        assert layers[header].to_list()[0] == built.layers[0].metrics[metric.name], header
        assert "/" not in header and " " not in header and "%" not in header
    conv = layers.row(by_predicate=pl.col("path") == "model.1.cv1.conv", named=True)
    assert (conv["flops_verdict"], conv["flops_analytic"]) == ("winograd", 2 * conv["macs_modelled"])
    assert conv["flops_ratio"] == pytest.approx(conv["flops_counted"] / conv["flops_analytic"])


@pytest.mark.parametrize("make", [runs.without_pmu, runs.without_passes])
def test_what_was_not_measured_is_an_empty_cell_under_its_header(make: runs.Builder, tmp_path: Path) -> None:
    run = make(tmp_path)
    tables.write_csv_files(run, document.build(run))
    header, *rows = (run.path / "layers.csv").read_text().splitlines()
    place = header.split(",").index("cpi_cycles_per_instruction")
    assert all(row.rsplit(",", header.count(",") - place)[1 if place < header.count(",") else 0] == "" for row in rows)
    assert (run.path / "energy.csv").read_text().startswith("zone,stage,windows,duration_seconds,energy_joules,")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = build(tmp_path)
    built = document.build(run)
    tables.write_csv_files(run, built)
    before = (run.path / "layers.csv").read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(pl.DataFrame, "write_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        tables.write_csv_files(run, built)
    assert (run.path / "layers.csv").read_bytes() == before
    assert not list(run.path.glob(".*.part"))
