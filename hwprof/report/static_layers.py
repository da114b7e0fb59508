"""The static layer table on the terminal: what a model is made of, before anything is measured."""

from __future__ import annotations

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table

from hwprof.run.manifest import WorkloadRecord

WIDE = 110  # columns from which on output shapes are shown


def show(layers: pl.DataFrame, workload: WorkloadRecord) -> None:
    """Prints the rows of the ``layers`` table, with totals of parameters and MACs below."""
    console = Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("layer", overflow="ellipsis", no_wrap=True)
    table.add_column("type", overflow="ellipsis", no_wrap=True)
    table.add_column("parameters", justify="right")
    table.add_column("MACs", justify="right")
    table.add_column("input", overflow="ellipsis", no_wrap=True)
    if console.width >= WIDE:
        table.add_column("output", overflow="ellipsis", no_wrap=True)
    for row in layers.iter_rows(named=True):
        cells = [
            "" if row["index"] is None else str(row["index"]),
            row["path"],
            row["type"],
            f"{row['parameters']:,}" if row["parameters"] else "",
            millions(row["macs"]),
            shapes(row["input_shapes"], row["more_shapes"]),
        ]
        if console.width >= WIDE:
            cells.append(shapes(row["output_shapes"], 0))
        table.add_row(*cells)
    console.print(table)
    leaves = layers.filter(pl.col("leaf"))
    console.print(
        f"[bold]{workload.name}[/]: {workload.parameters:,} parameters"
        f"{' (fused)' if workload.fused else ''}, {millions(int(leaves['macs'].sum()))} MACs in {leaves.height} leaf"
        f" layers, weights: {workload.weights}"
    )


def millions(macs: int | None) -> str:
    """MACs with three digits and the unit that fits; nothing where a layer has none."""
    if not macs:
        return ""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if macs >= size:
            return f"{macs / size:.3g} {unit}" if macs < 1000 * size else f"{macs / size:,.0f} {unit}"
    return str(macs)


def shapes(text: str | None, more: int | None) -> str:
    """Shapes as the table keeps them, with how many other ones an iteration has."""
    if text is None:
        return ""
    return f"{text} +{more}" if more else text
