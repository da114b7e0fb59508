"""Which run a command shows: the argument RUN and the option --root, the same wherever a run is taken."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwprof.cli.folders import Folder
from hwprof.errors import HwprofError, UsageError
from hwprof.printable import one_line

if TYPE_CHECKING:
    from hwprof.run.directory import RunDirectory

ROOT: Final = Path("results")
"""Where runs are kept unless the user says otherwise."""


NEWEST: Final = 3
"""How many runs are named to somebody who asked for one that is not there."""


def takes_run(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command's parameters ``run`` and ``root``: what ``open_run`` takes."""
    root = click.option(
        "--root",
        "-C",
        type=Folder(),
        default=ROOT,
        show_default=True,
        metavar="DIR",
        help="Where runs are kept: for a RUN given by its name, and for the latest one.",
    )
    run = click.argument("run", required=False, type=click.Path(path_type=Path))
    return run(root(command))


def open_run(run: Path | None, root: Path) -> RunDirectory:
    """The run that was asked for: in this folder, or in the folder of this name in ``root``; None: the latest there
    that has figures.

    Raises ``UsageError`` where there is none, and what ``RunDirectory.open`` raises.
    """
    from hwprof.run.directory import BENCH_FILE, RunDirectory
    from hwprof.run.manifest import MANIFEST_FILE
    from hwprof.run.regular_files import may_exist

    if run is None:
        return _latest(root)
    is_name = len(run.parts) == 1
    places = [run, root / run] if is_name else [run]
    for file in (MANIFEST_FILE, BENCH_FILE):  # of a bench it says what shows it
        for place in places:
            if may_exist(place / file):
                return RunDirectory.open(place)
    if is_name and not may_exist(run):
        message = f"no run {run}: there is neither such a folder here nor a run of that name in {root}/"
        raise UsageError(message, _newest_names(root))
    return RunDirectory.open(run)  # says what is wrong with it


def _latest(root: Path) -> RunDirectory:
    """The newest run with figures; where a newer one has none yet, as during a collect in another terminal, a line says
    so. None has any: the newest."""
    from hwprof.run.directory import RunDirectory, newest_first

    newest = RunDirectory.latest(root)
    if newest.kept_passes():
        return newest
    for folder in newest_first(root):
        with suppress(HwprofError):  # a damaged one that was not asked for
            found = RunDirectory.open(folder)
            if found.kept_passes():
                click.echo(_passed_over(newest, found), err=True)
                return found
    return newest


def _passed_over(newest: RunDirectory, shown: RunDirectory) -> str:
    """Why it is not the newest run that is shown."""
    from hwprof.run.manifest import UNFINISHED

    passes = newest.manifest.passes
    open_ended = not passes or any(record.status == "running" for record in passes)
    why = f"is {UNFINISHED}" if open_ended else "has no figures: no pass was completed"
    return one_line(f"the newest run, {newest.path.name}, {why}; shown is {shown.path.name}")


def _newest_names(root: Path) -> str:
    """What to do instead of asking for a run that is not there."""
    from hwprof.run.directory import newest_first

    names = [folder.name for folder in newest_first(root)]
    if not names:
        return f"{root}/ has no runs; --root DIR looks elsewhere"
    return f"{', '.join(names[:NEWEST])}{f' ({len(names) - NEWEST} older)' if len(names) > NEWEST else ''}"
