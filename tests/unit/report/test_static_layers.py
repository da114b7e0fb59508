"""The static layer table at every width."""

from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

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
    ("width", "shapes"), [(60, []), (80, ["input", "output"]), (120, ["input", "output"]), (200, ["input", "output"])]
)
def test_no_line_is_wider_than_the_terminal_and_what_matters_is_shown(width: int, shapes: list[str]) -> None:
    console = Console(width=width, file=io.StringIO(), highlight=False, markup=False)
    workload = WorkloadRecord(name="made", kind="yolo", weights="random", parameters=3_000_000, threads=1, batch=1)
    static_layers.show(LAYERS, workload, console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    assert any("2,000,000" in line and "5.00 M" in line for line in lines)
    assert [word for word in lines[0].split() if word in ("input", "output")] == shapes
    assert "7.50 M MACs in 3 leaf layers," in " ".join(lines)


def test_macs_that_are_not_known_are_in_no_sum_and_it_says_so() -> None:
    console = Console(width=120, file=io.StringIO(), highlight=False, markup=False)
    workload = WorkloadRecord(name="made", kind="module", weights="random", parameters=3, threads=1, batch=1)
    last = pl.col("order") == 2
    layers = LAYERS.with_columns(
        type=pl.when(last).then(pl.lit("LSTM")).otherwise("type"), macs=pl.when(~last).then(pl.col("macs"))
    )
    static_layers.show(layers, workload, console)
    assert isinstance(console.file, io.StringIO)
    assert "2.50 M MACs in 3 leaf layers (not known of LSTM)," in console.file.getvalue()
