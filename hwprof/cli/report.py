"""``hwprof report``: what a run measured."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hwprof.cli.streams import print_json
from hwprof.cli.which_run import open_run, takes_run
from hwprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwprof.run.directory import RunDirectory


@click.command("report")
@takes_run
@click.option("--top", type=click.IntRange(1, 1_000_000), default=15, show_default=True, help="Rows of each table.")
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
    help="json: everything (of --kernels or --layer: that part), in full precision; json-schema: what that JSON looks"
    " like.",
)
@click.option("--kernels", is_flag=True, help="Of each hot layer its kernels, and of each hot kernel its layers.")
@click.option(
    "--layer", metavar="PATH", help="All that is known of one layer (model.0.conv), or of those in a module (model.51)."
)
@click.option("--full-names", is_flag=True, help="With --kernels or --layer: the kernels' names in full length too.")
@click.option(
    "--width", type=click.IntRange(min=40, max=1000), help="Columns of the text. Default: the terminal's, 80 in a pipe."
)
def report_command(
    run: Path | None,
    root: Path,
    top: int,
    sort: str,
    metrics: str | None,
    form: str,
    kernels: bool,
    layer: str | None,
    full_names: bool,
    width: int | None,
) -> None:
    """Show what a run measured: layers, kernels, threads, …

    RUN is a run's folder, or the name of a run in --root; without it, the latest one there that has figures. Works on
    another machine than the one that measured.

    \b
    Examples:
      hwprof report
      hwprof report 20261121-142501-yolov7 --top 30 --sort cpi
      hwprof report /elsewhere/20261121-142501-yolov7
      hwprof report --metrics cpi,cache,dram_gbytes
      hwprof report --kernels --top 5
      hwprof report --layer model.51 --full-names
      hwprof report --layer model.51 --format json
      hwprof report --format json | jq '.layers.rows[] | {path, share}'
      hwprof report --width 160 > report.txt
    """
    if kernels and layer is not None:
        raise UsageError("--kernels and --layer are two reports", "choose one of them")
    if full_names and not kernels and layer is None:
        raise UsageError("--full-names goes with --kernels or --layer", "hwprof report --kernels --full-names")
    part = Part(kernels=kernels, layer=layer, full_names=full_names)
    if form == "json-schema":
        _print_schema(part)
        return
    found = open_run(run, root)
    chosen = [item.strip().lower() for item in metrics.split(",") if item.strip()] if metrics is not None else None
    show(found, form=form, top=top, sort=sort, metrics=chosen, width=width, part=part)


@dataclass(frozen=True)
class Part:
    """What of a report is shown: all of it, the kernels of the hot layers, or one layer (or module) by its path."""

    kernels: bool = False
    layer: str | None = None
    full_names: bool = False


def show(
    run: RunDirectory,
    *,
    form: str = "text",
    top: int = 15,
    sort: str = "time",
    metrics: Sequence[str] | None = None,
    width: int | None = None,
    part: Part | None = None,
) -> None:
    """Prints a run's report in one of the forms ``text`` and ``json``; ``metrics``: names and groups of the text's
    columns, None: the usual ones; ``part``: what of it, None: all."""
    from hwprof.report.document import hot_kernels, one_layer
    from hwprof.report.document.builder import ranked
    from hwprof.report.json.codec import encode
    from hwprof.report.json.kept import document_of

    built = ranked(document_of(run), top, sort)
    selected: hot_kernels.HotKernels | one_layer.OneLayer | None = None
    if part is not None and part.layer is not None:
        selected = one_layer.one_layer(built, part.layer)
    elif part is not None and part.kernels:
        selected = hot_kernels.hot_kernels(built, top)
    if form == "json":
        _print_json(encode(built) if selected is None else msgspec.json.encode(selected))
        return
    from hwprof.report.text import choice
    from hwprof.report.text import hot_kernels as text_of_hot_kernels
    from hwprof.report.text import one_layer as text_of_one_layer
    from hwprof.report.text.console import make_console
    from hwprof.report.text.page import Page
    from hwprof.report.text.report import render

    wanted = choice.expand(metrics, built) if metrics is not None else None
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf") and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # names and reasons may hold what the terminal cannot show
    console = make_console(width)
    if selected is None:
        render(built, console, wanted)
        return
    page, full_names = Page(built, console, wanted), part is not None and part.full_names
    if isinstance(selected, one_layer.OneLayer):
        text_of_one_layer.show(selected, page, full_names=full_names)
    else:
        text_of_hot_kernels.show(selected, page, full_names=full_names)


def _print_json(compact: bytes) -> None:
    print_json(msgspec.json.format(compact, indent=1).decode())


def _print_schema(part: Part) -> None:
    from hwprof.report.document.hot_kernels import HotKernels
    from hwprof.report.document.one_layer import OneLayer
    from hwprof.report.json.codec import json_schema, schema_of

    kind = OneLayer if part.layer is not None else HotKernels if part.kernels else None
    _print_json(msgspec.json.encode(json_schema() if kind is None else schema_of(kind)))
