"""``hwprof report``: what a run measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwprof.run.directory import RunDirectory


@click.command("report")
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    metavar="DIR",
    help="Where to look for the latest run when RUN is not given.",
)
@click.option("--top", type=click.IntRange(min=1), default=15, show_default=True, help="Rows of layers and operators.")
@click.option(
    "--sort",
    default="time",
    show_default=True,
    metavar="KEY",
    help="Order of the layers: time, macs, bytes, parameters, calls, order, a metric (cpi, cache_mpki, gflops, …)"
    " or an event (cycles, …).",
)
@click.option(
    "--metrics",
    metavar="LIST",
    help="Columns of the text: metrics or groups of them (cpi, cache, branch, tlb, flops, vector, topdown, dram, model,"
    " threads, …) or all, by comma. Default: what fits.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "json-schema"]),
    default="text",
    show_default=True,
    help="json: everything, in full precision; json-schema: what that JSON looks like.",
)
@click.option(
    "--width", type=click.IntRange(min=40), help="Columns of the text. Default: the terminal's, 80 in a pipe."
)
def report_command(
    run: Path | None, root: Path, top: int, sort: str, metrics: str | None, form: str, width: int | None
) -> None:
    """Show what a run measured: stages, hottest layers, layer types, operators, energy.

    RUN is a run's folder; without it, the latest one is shown. Works on another machine than the one that measured.

    \b
    Examples:
      hwprof report
      hwprof report results/20261121-142501-yolov7 --top 30 --sort cpi
      hwprof report --metrics cpi,cache,dram_gbytes
      hwprof report --format json | jq '.layers[] | {path, share}'
      hwprof report --width 160 > report.txt
    """
    if form == "json-schema":
        _print_schema()
        return
    from hwprof.run.directory import RunDirectory

    found = RunDirectory.latest(root) if run is None else RunDirectory.open(run)
    chosen = [item.strip().lower() for item in metrics.split(",") if item.strip()] if metrics is not None else None
    show(found, form=form, top=top, sort=sort, metrics=chosen, width=width)


def show(
    run: RunDirectory,
    *,
    form: str = "text",
    top: int = 15,
    sort: str = "time",
    metrics: Sequence[str] | None = None,
    width: int | None = None,
) -> None:
    """Prints a run's report in one of the forms ``text`` and ``json``; ``metrics``: names and groups of the text's
    columns, None: the usual ones."""
    from hwprof.report import document, schema

    built = document.build(run, top, sort)
    if form == "json":
        sys.stdout.write(schema.encode(built).decode())
        return
    from hwprof.report import choice, terminal

    wanted = choice.expand(metrics, built) if metrics is not None else None
    if not sys.stdout.encoding.lower().startswith("utf") and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # names and reasons may hold what the terminal cannot show
    terminal.render(built, terminal.make_console(width), wanted)


def _print_schema() -> None:
    import msgspec

    from hwprof.report import schema

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema.json_schema()), indent=1).decode() + "\n")
