"""What ``hwprof collect`` leaves with a run and shows at the end: the trace, the report, its files."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from hwprof.errors import FullDiskError, HwprofError, is_full_disk, remedy_of_writing
from hwprof.printable import printable

if TYPE_CHECKING:
    from hwprof.cli.progress import Bars
    from hwprof.report.files import FilesBeside
    from hwprof.run.directory import RunDirectory


class Shown(NamedTuple):
    """How the report is shown at the end."""

    form: str  # "text" or "json"
    top: int  # rows of the hottest layers
    width: int | None  # columns of the text; None: the terminal's
    trace_limit: int  # slices


def prepare(files: FilesBeside) -> None:
    """While the last pass adds up: what comes then is imported."""
    files.prepare()
    from hwprof.cli.report import show  # noqa: F401
    from hwprof.trace.writer import write_trace  # noqa: F401


def write(run: RunDirectory, bars: Bars, files: FilesBeside, trace_limit: int) -> tuple[str, HwprofError | None]:
    """The files made from the tables: the trace and the document; the CSV tables are still being written. What the
    trace holds is returned, and a failure: the report can be shown all the same."""
    from polars.exceptions import PolarsError

    from hwprof.trace.writer import write_trace

    contents = ""
    try:
        files.begin()
        bars.phase("", "analysing, writing trace.pftrace", None)
        contents = write_trace(run, run.path / "trace.pftrace", bars.reached, trace_limit, files.facts).contents()
        bars.phase("", "writing the report", None)
        files.wait_for_document()
    except (HwprofError, OSError, PolarsError) as error:
        return contents, _told(error, run)
    return contents, None


def _told(error: Exception, run: RunDirectory) -> HwprofError:
    if is_full_disk(error):
        return FullDiskError(str(run.path))
    if isinstance(error, HwprofError):
        return error
    if isinstance(error, OSError):
        return HwprofError(f"cannot write to {run.path}: {error.strerror or error}", remedy_of_writing(error))
    return HwprofError(f"cannot write to {run.path}: {error}")


def show_run(run: RunDirectory, shown: Shown, traced: str, written: Callable[[], None]) -> HwprofError | None:
    """``traced``: what the trace holds; empty where there is none. ``written`` waits for all files: why they are not
    there is returned."""
    from hwprof.cli.report import Part, show

    show(run, form=shown.form, top=shown.top, width=shown.width, part=Part(first=shown.form == "text"))
    failure: HwprofError | None = None
    try:
        written()
    except (HwprofError, OSError) as error:
        failure = _told(error, run)
    if shown.form == "text":
        from hwprof.report.text.console import make_console
        from hwprof.trace.writer import TRACE_FILE

        name, trace, columns = name_of(run), run.path / TRACE_FILE, make_console(shown.width).width
        kept = ", ".join([*_kept(run), *([TRACE_FILE] if trace.exists() else [])])
        click.echo(f"\n{_filled(f'kept in {name}: {kept}', '  ', columns)}")
        if trace.exists():
            told = f"the trace in ui.perfetto.dev{f': {traced}' if traced else ''}"
            click.echo(_command(f"  hwprof open {name}  ", told, columns))
        click.echo(_command(f"  hwprof report {name}", "this report again", columns))
    return failure


def _command(command: str, told: str, columns: int) -> str:
    """A command and what it does: behind it if there is room, else below it; the command itself is to be copied."""
    line = f"{command}    {told}"
    if len(line) <= columns:
        return line
    return f"{command.rstrip()}\n{_filled(f'      {told}', ' ' * 6, columns)}"


def _filled(text: str, indent: str, columns: int) -> str:
    """In lines of so many columns; a name that is longer has a line of its own."""
    lines = textwrap.wrap(text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def _kept(run: RunDirectory) -> list[str]:
    """What is there of it beside the trace: on a full disk not all could be written."""
    forms = [form for form, files in (("Parquet", "*.parquet"), ("CSV", "*.csv")) if any(run.path.glob(files))]
    tables = [f"tables ({', '.join(forms)})"] if forms else []
    return [*tables, *(["images"] if any(run.path.glob("images/*")) else [])]


def name_of(run: RunDirectory) -> str:
    """Its folder as the user writes it here."""
    here = Path.cwd()
    name = str(run.path.relative_to(here) if run.path.is_relative_to(here) else run.path)
    return printable(shlex.quote(f"./{name}" if name.startswith("-") else name))  # else it is an option
