"""The static layer table at every width."""

from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

from hwprof.analysis.layers import static_rows
from hwprof.report.text import static_layers
from hwprof.run.manifest import WorkloadRecord
from hwprof.run.schema import conform

LAYERS = conform(
    "layers",
    pl.DataFrame(
        [
            {
                "order": number, "index": number, "path": f"model.{number}.some.longer.path.conv", "type": "Conv2d",
                "leaf": True, "depth": 4, "parameters": 1_000_000 * number, "macs": 2_500_000 * number, "bytes": 1,
                "calls": 2, "input_shapes": "1x3x640x480", "output_shapes": "1x32x320x240", "more_shapes": 1,
            }
            for number in range(3)
        ]
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("width", "shapes"), [(60, []), (80, ["input"]), (120, ["input", "output"]), (200, ["input", "output"])]
)
def test_no_line_is_wider_than_the_terminal_and_what_matters_is_shown(width: int, shapes: list[str]) -> None:
    console = Console(width=width, file=io.StringIO(), highlight=False, markup=False)
    workload = WorkloadRecord(name="made", kind="yolo", weights="random", parameters=3_000_000, threads=1, batch=1)
    static_layers.show(LAYERS, static_rows(LAYERS), workload, console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    assert any("2,000,000" in line and "5.00 M" in line for line in lines)
    assert [word for word in lines[0].split() if word in ("input", "output")] == shapes
    assert "7.50 M MACs, 3 leaf layers," in " ".join(lines)


def test_weights_that_are_no_numbers_are_told_below_it() -> None:
    console = Console(width=80, file=io.StringIO(), highlight=False, markup=False)
    workload = WorkloadRecord(
        name="made", kind="yolo", weights="w.pt", weights_unsound="3 of 9 tensors hold NaN", parameters=1, threads=1,
        batch=1,
    )  # fmt: skip
    static_layers.show(LAYERS, static_rows(LAYERS), workload, console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[-1] == "3 of 9 tensors hold NaN"


NESTED = [f"model.{block}.m.0.m.{part}.cv{number}.conv" for block in (6, 8) for part in (0, 1) for number in (1, 2)]


@pytest.mark.parametrize("prefix", ["", "encoder.layers.a_name_that_no_terminal_has_room_for."])
@pytest.mark.parametrize("width", [56, 80, 120])
def test_every_row_can_be_told_from_every_other(width: int, prefix: str) -> None:
    layers = pl.concat([LAYERS.head(1).with_columns(path=pl.lit(prefix + path)) for path in NESTED])
    first, second, *shown = shown_lines(layers, width)
    rows = [line.split()[1] for line in shown if "Conv2d" in line]
    assert "layer" in first and set(second) == {"─"}
    assert any(", 0 MACs, 8 leaf layers," in line for line in shown)
    assert len(rows) == len(set(rows)) == len(NESTED)
    if not prefix:
        assert not any("…" in row for row in rows)


@pytest.mark.parametrize("width", [60, 72])
def test_the_total_goes_on_below_its_beginning(width: int) -> None:
    lines = shown_lines(LAYERS, width)
    (begin,) = [number for number, line in enumerate(lines) if line.startswith("made: ")]
    assert len(lines) > begin + 1
    assert all(line.startswith("  ") for line in lines[begin + 1 :])
    assert all(line == line.rstrip() for line in lines)


def shown_lines(layers: pl.DataFrame, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), highlight=False, markup=False)
    workload = WorkloadRecord(
        name="made", kind="yolo", weights="random (seed 0)", parameters=3_000_000, threads=1, batch=1
    )
    static_layers.show(layers, static_rows(layers), workload, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_macs_that_are_not_known_are_in_no_sum_and_it_says_so() -> None:
    console = Console(width=120, file=io.StringIO(), highlight=False, markup=False)
    workload = WorkloadRecord(name="made", kind="module", weights="random", parameters=3, threads=1, batch=1)
    last = pl.col("order") == 2
    layers = LAYERS.with_columns(
        type=pl.when(last).then(pl.lit("LSTM")).otherwise("type"), macs=pl.when(~last).then(pl.col("macs"))
    )
    static_layers.show(layers, static_rows(layers), workload, console)
    assert isinstance(console.file, io.StringIO)
    assert "2.50 M MACs (not known of LSTM), 3 leaf layers," in console.file.getvalue()


def test_products_of_functions_are_rows_that_complete_the_sum() -> None:
    """A block that multiplies between its layers has a row of its own; one that does not has none."""
    block = LAYERS.head(1).with_columns(leaf=pl.lit(False), macs=9_000_000, own_macs=6_500_000)
    unknown = block.with_columns(path=pl.lit(""), own_macs=None)
    around = block.with_columns(path=pl.lit("around"), own_macs=0)
    block = block.with_columns(path=pl.lit("block"))
    lines = shown_lines(conform("layers", pl.concat([around, unknown, block, LAYERS[1]], how="vertical_relaxed")), 80)
    rows = [line.split()[1:3] for line in lines if "Conv2d" in line and "MACs" not in line]
    assert rows == [["(root)", "(own)"], ["block", "(own)"], ["model.1.some.longer.path.conv", "Conv2d"]]
    assert any("6.50 M" in line and "block" in line for line in lines)
    assert " 9.00 M MACs (not known of Conv2d), 1 leaf layer," in " ".join(lines)


def test_where_no_macs_are_known_there_are_not_0() -> None:
    layers = LAYERS.head(1).with_columns(macs=pl.lit(None, pl.Int64))
    text = " ".join(shown_lines(layers, 120))
    assert "MACs not known of Conv2d," in text
    assert "0 MACs" not in text


def test_numbers_stand_where_the_model_has_some() -> None:
    assert shown_lines(LAYERS, 80)[0].split()[0] == "#"
    assert shown_lines(LAYERS.with_columns(index=pl.lit(None, pl.Int32)), 80)[0].split()[0] == "layer"


def test_parameters_are_those_of_the_module_around_all() -> None:
    """Not what was known before the model was called."""
    root = LAYERS.head(1).with_columns(path=pl.lit(""), leaf=pl.lit(False), parameters=5_000_000, own_macs=0)
    layers = conform("layers", pl.concat([root, LAYERS], how="vertical_relaxed"))
    assert "made: 5,000,000 parameters," in " ".join(shown_lines(layers, 120))


def test_parameters_that_cannot_be_read_are_a_dash_with_its_reason() -> None:
    console = Console(width=80, file=io.StringIO(), highlight=False, markup=False)
    workload = WorkloadRecord(
        name="made", kind="module", weights="random", parameters=None, threads=1, batch=1, notes=["not to be read"]
    )
    layers = LAYERS.with_columns(parameters=pl.when(pl.col("order") != 1).then("parameters"))
    static_layers.show(layers, layers, workload, console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    (row,) = [line.split() for line in lines if "model.1." in line]
    assert row[3] in ("-", "–")
    assert lines[-1] == "not to be read"


def timed_rows() -> pl.DataFrame:
    """Each layer takes 1.5 ms and a tenth; two rows stand below."""
    times = {"time_mean_ns": 1.5e6, "time_min_ns": 1_000_000, "share": 0.1, "runs": 10}
    rows = static_rows(LAYERS).with_columns(pl.lit(value).alias(name) for name, value in times.items())
    below = pl.DataFrame(
        [{"path": "unattributed", **times}, {"path": "whole", "macs": 7_500_000, **times, "share": 1.0}]
    )
    return pl.concat([rows, below], how="diagonal_relaxed")


def test_times_stand_beside_the_layers_and_the_whole_below() -> None:
    console = Console(width=80, file=io.StringIO(), highlight=False, markup=False)
    workload = WorkloadRecord(name="made", kind="yolo", weights="random", parameters=3_000_000, threads=1, batch=1)
    static_layers.show(LAYERS, timed_rows(), workload, console, ["a note"])
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines[0].split()[:5] == ["#", "layer", "type", "mean", "ms"]
    assert all(line.split()[3:5] == ["1.50", "10.0%"] for line in lines[2:5])
    assert lines[5] == "" and lines[6].split() == ["unattributed", "1.50", "10.0%"]
    assert lines[7].split()[:3] == ["inference", "1.50", "100.0%"] and "7.50 M" in lines[7]
    assert lines[8] == "a note" and lines[9].startswith("made: ")
