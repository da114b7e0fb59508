"""The layer table of ``hwprof layers`` on the terminal: what a model is made of, and how long it takes if that was
measured."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import polars as pl
from rich.console import Console

from hwprof.analysis.layers import parameters_of_model
from hwprof.analysis.owners import INFERENCE, OWN, ROOT_NAME, WHOLE
from hwprof.report.text import figures, grid
from hwprof.report.text.figures import Glyphs, glyphs_of
from hwprof.report.text.grid import Column
from hwprof.run.manifest import WorkloadRecord

LEAST_PATH = 12
LEAST_TYPE = 9
LEAST_SHAPE = 14
NAMES = 3
"""Types of layers that are named."""


def show(
    layers: pl.DataFrame, shown: pl.DataFrame, workload: WorkloadRecord, console: Console, notes: Sequence[str] = ()
) -> None:
    """Prints the rows ``shown`` of the table ``layers`` in the console's width, with the columns of ``forward_times``
    where they have them, and below it the ``notes``, and totals of parameters and MACs."""
    glyphs = glyphs_of(console.encoding)
    rows = shown.to_dicts()
    below = sum(_is_below(row) for row in rows)
    others = [
        Column("type", [row["type"] or "" for row in rows], right=False, least=LEAST_TYPE),
        *(_times(rows, glyphs) if "time_mean_ns" in shown.columns else ()),
        Column("parameters", [_parameters(row, glyphs) for row in rows]),
        Column("MACs", [_macs(row, glyphs) for row in rows]),
        Column("calls", ["" if row["calls"] is None else str(row["calls"]) for row in rows], 4),
        Column("input", [_shapes(row) for row in rows], 1, right=False, least=LEAST_SHAPE),
        Column("output", [row["output_shapes"] or "" for row in rows], 2, right=False, least=LEAST_SHAPE),
    ]
    numbered = any(row["index"] is not None for row in rows)
    numbers = [Column("#", [str(row["index"] if row["index"] is not None else "") for row in rows])] if numbered else []
    paths = Column("layer", [_name(row) for row in rows], right=False)
    always = sum(other.needed + grid.GAP for other in (*numbers, *others) if other.priority == grid.ALWAYS)
    paths.least = max(LEAST_PATH, min(paths.width, console.width - always))  # whole, at the cost of the shapes
    columns = [*numbers, paths, *others]
    console.print(grid.table(grid.fit(columns, console.width), glyphs, below))
    leaves = layers.filter(pl.col("leaf"))
    own = pl.when("leaf").then("macs").otherwise("own_macs")  # of functions that a block calls: in no leaf
    macs = layers.select(own.sum()).item()
    parameters = parameters_of_model(layers, workload.parameters)
    total = (
        f"{workload.name}: {_whole(parameters, glyphs)} parameters{' (fused)' if workload.fused else ''},"
        f" {_total(macs, layers, glyphs)}, {figures.plural(leaves.height, 'leaf layer')},"
        f" weights: {workload.weights}"
    )
    unsound = filter(None, [workload.weights_unsound])
    for line in [*notes, total, *unsound, *(workload.notes if parameters is None else ())]:
        console.print("\n".join(textwrap.wrap(line, console.width, subsequent_indent="  ", break_on_hyphens=False)))


def _is_below(row: dict[str, Any]) -> bool:
    """Whether it is no layer's: what others have together, or the whole."""
    return row["leaf"] is None


def _name(row: dict[str, Any]) -> str:
    return INFERENCE if _is_below(row) and row["path"] == WHOLE else row["path"] or ROOT_NAME


def _times(rows: Sequence[dict[str, Any]], glyphs: Glyphs) -> list[Column]:
    """Nothing of a layer that was not called."""
    return [
        Column(
            "mean ms",
            ["" if row["time_mean_ns"] is None else figures.milliseconds(row["time_mean_ns"]) for row in rows],
        ),
        Column("share", ["" if row["share"] is None else figures.percent(row["share"], glyphs) for row in rows]),
    ]


def _total(macs: int, layers: pl.DataFrame, glyphs: Glyphs) -> str:
    """The MACs, and whose are in no sum; 0 only of a model without products."""
    unknown = layers.filter(pl.when("leaf").then("macs").otherwise("own_macs").is_null())
    if unknown.is_empty():
        return f"{_amount(macs, glyphs) or 0} MACs"
    whose = f"not known of {figures.some(unknown['type'].unique().sort().to_list(), NAMES)}"
    return f"{_amount(macs, glyphs)} MACs ({whose})" if macs else f"MACs {whose}"


def _parameters(row: dict[str, Any], glyphs: Glyphs) -> str:
    """Nothing where a layer has none, or a row is a module's own code; a dash where they cannot be read."""
    of_code = row["path"].endswith(OWN) and row["parameters"] is None
    none = row["parameters"] == 0 or of_code or _is_part_of_the_whole(row)
    return "" if none else _whole(row["parameters"], glyphs)


def _whole(number: int | None, glyphs: Glyphs) -> str:
    """Every digit, or a dash."""
    return glyphs.dash if number is None else f"{number:,}"


def _macs(row: dict[str, Any], glyphs: Glyphs) -> str:
    return "" if _is_part_of_the_whole(row) else _amount(row["macs"], glyphs)


def _is_part_of_the_whole(row: dict[str, Any]) -> bool:
    """Whether it has a time and nothing else."""
    return _is_below(row) and row["path"] != WHOLE


def _amount(macs: int | None, glyphs: Glyphs) -> str:
    """Nothing where a layer has none; a dash where they are not known."""
    if macs is None:
        return glyphs.dash
    return figures.amount(macs, glyphs) if macs else ""


def _shapes(row: dict[str, object]) -> str:
    """The first call's input shapes, and how many other ones an iteration has."""
    shapes = str(row["input_shapes"] or "")
    return f"{shapes} +{row['more_shapes']}" if row["more_shapes"] else shapes
