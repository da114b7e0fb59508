"""Progress on standard error: bars; where it is not a terminal, a line now and then."""

from __future__ import annotations

import sys
from types import TracebackType

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from hwprof.cli.progress_lines import ProgressLines

REFRESH_PER_SECOND = 4  # drawing takes time from the processors that are being measured


class Bars:
    """One bar for the phase that is under way, with what it is and how long is left."""

    def __init__(self) -> None:
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.fields[pass_name]}[/] {task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True),
            refresh_per_second=REFRESH_PER_SECOND,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bars.add_task("", total=None, pass_name="")
        self._lines = ProgressLines() if self._bars.disable else None

    def __enter__(self) -> Bars:
        self._bars.start()
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bars.stop()
        if self._lines is not None:
            self._lines.stop()

    def phase(self, pass_name: str, text: str, total: int | None) -> None:
        """Another phase begins."""
        self._bars.remove_task(self._task)
        self._task = self._bars.add_task(text, total=total, pass_name=pass_name)
        if self._lines is not None:
            self._lines.phase(pass_name, text, total)

    def step(self) -> None:
        """One step of the phase is done."""
        self._bars.advance(self._task)
        if self._lines is not None:
            self._lines.step()

    def reached(self, done: int, total: int) -> None:
        """The phase has come this far."""
        self._bars.update(self._task, completed=done, total=total)
        if self._lines is not None:
            self._lines.reached(done, total)

    def tell(self, pass_name: str, text: str) -> None:
        """Something that the user should know at once, in a line that stays."""
        if self._lines is not None:
            self._lines.tell(pass_name, text)
        else:
            self._bars.console.print(f"[{pass_name}] {text}", markup=False, highlight=False, soft_wrap=True)

    def pass_on(self, line: str) -> None:
        """A line that somebody else prints there: as it is, above the bar."""
        if self._lines is not None:
            click.echo(line, err=True)
        else:
            self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
