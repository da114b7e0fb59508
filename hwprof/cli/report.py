"""``hwprof report``: what a run measured."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from hwprof.cli.text_width import width_option
from hwprof.cli.which_run import open_run, takes_run
from hwprof.errors import DamagedError, HwprofError, UsageError
from hwprof.printable import escaped_json
from hwprof.report.pages import PAGES, ReportPage
from hwprof.report.sections import SECTIONS, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwprof.report.document.document import Document
    from hwprof.run.directory import RunDirectory


ROWS: Final = 15
ALL: Final = 1_000_000
"""Rows of a table."""

SCREEN: Final = 8
"""Of the first screen's."""

AGAIN: Final = "a copy of the run, or hwprof collect again"


def _page_options(command: Callable[..., None]) -> Callable[..., None]:
    for page in reversed(PAGES):
        command = click.option(f"--{page.name}", is_flag=True, help=page.help)(command)
    return command


@click.command("report")
@takes_run
@click.option("--all", "everything", is_flag=True, help="All sections: stages, layers, kernels, threads, …")
@click.option(
    "--top",
    type=click.IntRange(1, ALL),
    help="Rows of each table. Default: 15, of the first screen 8, of a module's layers and of a page as JSON all.",
)
@click.option(
    "--sort",
    default="time",
    show_default=True,
    metavar="KEY",
    help="Order of the layers: time, macs, bytes, parameters, calls, order, a metric (cpi, llc_mpki, faults, …)"
    " or an event of the run (task-clock, …).",
)
@click.option(
    "--metrics",
    metavar="LIST",
    help="Columns of the text: metrics or groups of them (cpi, cache, branch, tlb, flops, vector, topdown, dram, model,"
    " threads, …) or all, by comma; with --all, which it implies. Default: what fits.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "json-schema"]),
    default="text",
    show_default=True,
    help="json: everything (of --layer and the other pages: that part), in full precision; json-schema: what that JSON"
    " looks like.",
)
@_page_options
@click.option(
    "--layer",
    metavar="PATH",
    help="All that is known of one layer (model.0.conv), or of those in a module (model.51). The end of a path will do,"
    " and a path as a table cuts it, where there is one like that.",
)
@click.option(
    "--section",
    metavar="NAME",
    help="One section of --all, or one key of the JSON: layers, stages, threads, …; of the hottest layers see --top.",
)
@click.option("--full-names", is_flag=True, help="With --kernels or --layer: the kernels' names in full length too.")
@width_option
def report_command(
    run: Path | None,
    root: Path,
    everything: bool,
    top: int | None,
    sort: str,
    metrics: str | None,
    form: str,
    layer: str | None,
    section: str | None,
    full_names: bool,
    width: int | None,
    **pages: bool,
) -> None:
    """Show what a run measured: on one screen where its time goes and what to do, or all of it, or a part.

    RUN is a run's folder, or the name of a run in --root; without it, the latest one there that has figures. Works on
    another machine than the one that measured.

    \b
    Examples:
      hwprof report
      hwprof report --all
      hwprof report --findings
      hwprof report 20261121-142501-yolov7 --top 30 --sort cpi
      hwprof report /elsewhere/20261121-142501-yolov7
      hwprof report --metrics cpi,cache,dram_gbytes
      hwprof report --kernels --top 5
      hwprof report --python --top 30
      hwprof report --operators
      hwprof report --lines
      hwprof report --cprofile
      hwprof report --roofline
      hwprof report --memory
      hwprof report --energy
      hwprof report --layer model.51 --full-names
      hwprof report --layer model.51 --format json
      hwprof report --section stages
      hwprof report --format json --section layers | jq '.rows[] | {path, share}'
      hwprof report --format json | jq '.layers.rows[] | {path, share}'
      hwprof report --width 160 > report.txt
    """
    asked = [page for page in PAGES if pages[page.name]]
    flags = [f"--{page.name}" for page in asked] + (["--layer"] if layer is not None else [])
    flags += ["--all"] if everything else []
    flags += ["--section"] if section is not None else []
    if len(flags) > 1:
        raise UsageError(f"{' and '.join(flags)} are reports of their own", "choose one of them")
    if full_names and flags not in (["--kernels"], ["--layer"]):
        raise UsageError("--full-names goes with --kernels or --layer", "hwprof report --kernels --full-names")
    first = not (flags or metrics is not None or form == "json")
    part = Part(next(iter(asked), None), layer, full_names, first, _section(section, form), of_module=top)
    if form == "json-schema":
        _print_schema(part)
        return
    found = open_run(run, root)
    chosen = [item.strip().lower() for item in metrics.split(",") if item.strip()] if metrics is not None else None
    rows = top or (SCREEN if first else ALL if form == "json" and part.page is not None else ROWS)
    show(found, form=form, top=rows, sort=sort, metrics=chosen, width=width, part=part, complete=True)


def _section(name: str | None, form: str) -> Section | None:
    """The section of that name, which has this form. Raises ``UsageError``."""
    if name is None:
        return None
    having = [one for one in SECTIONS if ("text" if form == "text" else "document") in one.rooms]
    found = next((one for one in having if one.name == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [one.name for one in having], n=1)
        known = ", ".join(one.name for one in having)
        raise UsageError(f"there is no section {name!r} as {form}", near[0] if near else f"one of {known}")
    return found


@dataclass(frozen=True)
class Part:
    """What of a report is shown: all of it, its first screen, a page on one subject, one layer (or module), or one
    section."""

    page: ReportPage | None = None
    layer: str | None = None
    full_names: bool = False
    first: bool = False
    section: Section | None = None
    of_module: int | None = None  # rows of a module's layers; None: all


def show(
    run: RunDirectory,
    *,
    form: str = "text",
    top: int = ROWS,
    sort: str = "time",
    metrics: Sequence[str] | None = None,
    width: int | None = None,
    part: Part | None = None,
    complete: bool = False,
) -> None:
    """Prints a run's report in one of the forms ``text`` and ``json``; ``metrics``: names and groups of the text's
    columns, None: the usual ones; ``part``: what of it, None: all; ``complete``: also writes the CSV files that a run
    lacks. Raises ``DamagedError``, with all else shown."""
    from hwprof.report.json.kept import load, made_anew

    chosen = Choice(form, top, sort, metrics, width, part or Part())
    kept = load(run)
    if kept is not None:
        try:
            text = _text_of(kept, chosen)
        except HwprofError:
            raise
        except Exception:  # the file is not as it was written, though its fingerprint and its form are
            kept = None
    damaged: tuple[str, ...] = ()
    anew: Document | None = None
    if kept is None:
        anew = made_anew(run)
        text, damaged = _text_of(anew, chosen), anew.damaged
    if complete:
        _write_missing_files(run, anew)
    sys.stdout.write(text)
    if damaged:
        raise DamagedError(f"{'; '.join(damaged)}: what is made of it is left out", AGAIN)


def _write_missing_files(run: RunDirectory, anew: Document | None) -> None:
    """The CSV files that a run lacks, which was ended before it had all; where the run may be written. ``anew``: made
    of its tables just now; None: its document was kept, with fewer digits, so one is made where there is no file."""
    from hwprof.report.csv.files import write_csv_files
    from hwprof.report.json.kept import made_anew

    running = any(record.status == "running" for record in run.manifest.passes)
    if running or not os.access(run.path, os.W_OK) or (anew is None and any(run.path.glob("*.csv"))):
        return
    with suppress(OSError, HwprofError):  # what was asked for is shown all the same
        document = anew or made_anew(run)
        if not document.damaged:
            write_csv_files(run, document, missing=True)


@dataclass(frozen=True)
class Choice:
    """What of a document is shown, and how."""

    form: str
    top: int
    sort: str
    metrics: Sequence[str] | None
    width: int | None
    part: Part


def _text_of(document: Document, chosen: Choice) -> str:
    """All that is printed of it. Raises ``HwprofError`` for a choice that it does not have."""
    from hwprof.report.document import one_layer
    from hwprof.report.document.builder import ranked
    from hwprof.report.json.codec import encode
    from hwprof.report.json.numbers import encoded

    built = ranked(document, chosen.top, chosen.sort)
    selected: msgspec.Struct | None = None
    if chosen.part.layer is not None:
        selected = one_layer.one_layer(built, chosen.part.layer)
    elif chosen.part.page is not None:
        selected = chosen.part.page.document.select(built, chosen.top)
    elif chosen.part.section is not None and "document" in chosen.part.section.rooms:
        selected = _of_section(built, chosen.part.section)
    if chosen.form == "json":
        return _json(encode(built) if selected is None else encoded(selected))
    return _on_a_console(built, selected, chosen)


def _of_section(document: Document, section: Section) -> msgspec.Struct:
    """Its part. Raises ``HwprofError`` where the run has nothing of it."""
    found = document.parts.get(section.name)
    if found is None:
        why = document.absent.get(section.name)
        raise HwprofError(
            f"this run has no {section.name}: {why.reason if why else 'nothing was measured'}",
            why.remedy if why else None,
        )
    return found


def _on_a_console(built: Document, selected: msgspec.Struct | None, chosen: Choice) -> str:
    """With colours where standard output has them."""
    from hwprof.report.document.one_layer import OneLayer
    from hwprof.report.text import choice, first_screen, one_layer
    from hwprof.report.text.console import make_console
    from hwprof.report.text.page import Page
    from hwprof.report.text.report import render

    wanted = choice.expand(chosen.metrics, built) if chosen.metrics is not None else None
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf") and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # names and reasons may hold what the terminal cannot show
    console = make_console(chosen.width)
    with console.capture() as captured:
        if chosen.part.section is not None:
            chosen.part.section.text.show(Page(built, console, wanted))
        elif selected is None and chosen.part.first and first_screen.has_one(built):
            first_screen.show(Page(built, console, wanted))
        elif selected is None:
            render(built, console, wanted)
        elif isinstance(selected, OneLayer):
            part = chosen.part
            one_layer.show(selected, Page(built, console, wanted), full_names=part.full_names, top=part.of_module)
        elif chosen.part.page is not None:
            options: dict[str, Any] = {"full_names": True} if chosen.part.full_names else {}
            chosen.part.page.text.show(selected, Page(built, console, wanted), **options)
    text = captured.get()
    if chosen.part.section is not None and not text.strip():
        raise HwprofError(f"this run has nothing of {chosen.part.section.name}", "hwprof report --all says why")
    return text


def _json(compact: bytes) -> str:
    """Indented for who reads it; for programs a third smaller."""
    text = msgspec.json.format(compact, indent=1) if sys.stdout.isatty() else compact
    return f"{escaped_json(text.decode())}\n"


def _print_schema(part: Part) -> None:
    from hwprof.report.document.one_layer import OneLayer
    from hwprof.report.json.codec import json_schema, schema_of

    kind: type[msgspec.Struct] | None = None
    if part.layer is not None:
        kind = OneLayer
    elif part.page is not None:
        kind = part.page.document.PAGE
    elif part.section is not None:
        kind = part.section.document.PART
    schema = msgspec.json.encode(json_schema() if kind is None else schema_of(kind))
    sys.stdout.write(f"{escaped_json(msgspec.json.format(schema, indent=1).decode())}\n")
