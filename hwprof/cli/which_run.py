"""Which run a command shows: the argument RUN and the option --root, the same wherever a run is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwprof.errors import UsageError

if TYPE_CHECKING:
    from hwprof.run.directory import RunDirectory

ROOT: Final = Path("results")
"""Where runs are kept unless the user says otherwise."""


def takes_run(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command's parameters ``run`` and ``root``: what ``open_run`` takes."""
    root = click.option(
        "--root",
        "-C",
        type=click.Path(path_type=Path, file_okay=False),
        default=ROOT,
        show_default=True,
        metavar="DIR",
        help="Where runs are kept: for a RUN given by its name, and for the latest one.",
    )
    run = click.argument("run", required=False, type=click.Path(path_type=Path))
    return run(root(command))


def open_run(run: Path | None, root: Path) -> RunDirectory:
    """The run that was asked for: in this folder, or in the folder of this name in ``root``; None: the latest there.

    Raises ``UsageError`` where there is none, and what ``RunDirectory.open`` raises.
    """
    from hwprof.run.directory import RunDirectory
    from hwprof.run.manifest import MANIFEST_FILE

    if run is None:
        return RunDirectory.latest(root)
    is_name = len(run.parts) == 1
    places = [run, root / run] if is_name else [run]
    for place in places:
        if (place / MANIFEST_FILE).exists():
            return RunDirectory.open(place)
    if is_name and not run.exists():
        raise UsageError(f"no run {run}: there is neither such a folder here nor a run of that name in {root}/")
    return RunDirectory.open(run)  # says what is wrong with it
