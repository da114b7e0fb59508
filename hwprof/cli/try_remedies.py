"""``hwprof try``: what the remedies of a run's findings bring on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from hwprof.cli.numbers import TRY_S, RealRange
from hwprof.cli.streams import print_json
from hwprof.cli.text_width import width_option
from hwprof.cli.thread_numbers import check_names
from hwprof.cli.which_run import open_run, takes_run
from hwprof.errors import HwprofError, UsageError
from hwprof.remedies import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwprof.cli.progress import Bars
    from hwprof.run.directory import RunDirectory
    from hwprof.session.trials.run_trials import Tried


LONGEST_S: Final = 86_400.0
ALL: Final = "all"


class NothingToTryError(HwprofError):
    """No finding has a remedy."""


@click.command("try")
@takes_run
@click.option(
    "--remedies",
    metavar="LIST",
    help=f"By comma: {', '.join(catalogue.names())}; or all, alone. Default: those of the run's findings.",
)
@click.option(
    "--time",
    "limit_s",
    type=RealRange(min=0, min_open=True, max=LONGEST_S),
    default=TRY_S,
    show_default=True,
    metavar="SECONDS",
    help="No more processes are started when it is over, once there are three of each.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@width_option
def try_command(
    run: Path | None, root: Path, remedies: str | None, limit_s: float, form: str, width: int | None
) -> None:
    """Try remedies: the run's workload with and without each of them, then those together that help.

    RUN is a run's folder, or the name of a run in --root; without it, the latest one there that has figures. Each
    measurement is a fresh process; with and without take turns, so that what changes on the machine meanwhile
    changes for both. The result is kept with the run, and what to do is sorted by it.

    \b
    Examples:
      hwprof try
      hwprof try --time 120
      hwprof try --remedies channels_last,threads=4
      hwprof try 20261121-142501-yolov7 --remedies all
      hwprof try --format json | jq '.rows[] | {remedies, inference}'
    """
    from hwprof.cli.progress import Bars
    from hwprof.session.interruption import InterruptionError, signals_interrupt

    found = open_run(run, root)
    try:
        with signals_interrupt(), Bars() as bars:
            trials, failure, none_worked = carry_out(found, _asked(remedies), bars, limit_s)
    except KeyboardInterrupt as interrupt:
        raise InterruptionError(interrupt, "nothing was known yet") from interrupt
    if form == "json":
        print_json(msgspec.json.format(msgspec.json.encode(trials), indent=1).decode())
    else:
        from hwprof.cli.products import name_of
        from hwprof.report.text.console import make_console
        from hwprof.report.text.trials import show

        show(trials, make_console(width), name_of(found))
    if isinstance(failure, KeyboardInterrupt):
        raise InterruptionError(failure, "what was known by then is kept with the run")
    if (failure := failure or none_worked) is not None:
        raise failure


def carry_out(run: RunDirectory, asked: Sequence[str], bars: Bars, limit_s: float) -> Tried:
    """``asked``: names of remedies; none: those of the run's findings. Raises ``NothingToTryError`` where there are
    none, and ``HwprofError``."""
    from hwprof.session.trials.run_trials import carry_out, workload_of

    workload_of(run)
    names = list(asked) or _of_findings(run, bars)
    if not names:
        raise NothingToTryError("no finding of the run has a remedy that can be tried", "hwprof try --remedies all")
    return carry_out(run, names, bars, limit_s)


def _of_findings(run: RunDirectory, bars: Bars) -> list[str]:
    from hwprof.report.document.findings import Findings
    from hwprof.report.json.kept import document_of

    bars.phase("try", "looking for causes", None)
    document = document_of(run)
    part = document.part(Findings)
    if part is None:
        why = document.absent["findings"]
        raise NothingToTryError(f"the run has no findings: {why.reason}", why.remedy)
    return [name for finding in part.rows for name in finding.remedies]


def _asked(text: str | None) -> list[str]:
    if text is None:
        return []
    found = [name.strip().lower() for name in text.split(",") if name.strip()]
    if not found:
        raise UsageError("--remedies names nothing")
    if set(found) == {ALL}:
        return catalogue.all_names()
    if ALL in found:
        raise UsageError(f"{ALL} stands alone: it is every remedy but {catalogue.THREADS}=N", f"--remedies {ALL}")
    for name in found:
        catalogue.ready(name)
    check_names(found)
    return found
