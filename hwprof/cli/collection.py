"""One collection: the passes are carried out, and what was measured is written and shown, whatever comes between."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from hwprof.cli import products
from hwprof.errors import HwprofError

if TYPE_CHECKING:
    from hwprof.cli.progress import Bars
    from hwprof.report.files import FilesBeside
    from hwprof.run.directory import RunDirectory
    from hwprof.run.peaks import Peaks
    from hwprof.session.fork_server import ForkServer
    from hwprof.session.plan import PassPlan
    from hwprof.workload.spec import WorkloadSpec

LONGEST_LABEL: Final = 128
"""Bytes of a model's name in its run's; file systems take 255 for all of it."""


def carry_out(
    output: Path,
    spec: WorkloadSpec,
    plans: Sequence[PassPlan],
    server: ForkServer,
    shown: products.Shown,
    peaks: Peaks | None,
    try_s: float | None,
    *,
    keep_raw: bool,
) -> BaseException | None:
    """Measures, writes and shows. A failure is returned where there is something to show all the same, else raised."""
    from hwprof.cli.progress import Bars
    from hwprof.report.files import FilesBeside
    from hwprof.session import raw_files
    from hwprof.session.interruption import InterruptionError, comes_again, signals_interrupt

    with signals_interrupt():
        run = _create(output.absolute(), spec, peaks)  # wherever a model's code goes
        try:
            with FilesBeside(run) as files:
                with Bars() as bars:
                    failure = _measure(run, spec, plans, bars, server, files)
                    server.end()
                    traced, written = "", _nothing
                    if failure is None and try_s is not None:
                        failure = _try_remedies(run, bars, try_s)
                    if not keep_raw:
                        with suppress(OSError):  # on a full disk: what was measured is reported all the same
                            raw_files.drop_large(run)
                    if run.completed_passes():
                        # once more: whoever sends a second one does not wait for these
                        with signals_interrupt(), comes_again(failure):
                            traced, unwritten = products.write(run, bars, files, shown.trace_limit)
                        failure = unwritten or failure
                        if unwritten is None:
                            written = files.wait
                        else:
                            files.end()
                told_where = shown.form == "text"
                try:
                    failure = products.show_run(run, shown, traced, written) or failure
                except Exception:
                    if failure is None:
                        raise  # else that one is what is told
                    told_where = False
        except KeyboardInterrupt as interrupt:
            raise _interrupted(run, interrupt) from interrupt
    if isinstance(failure, KeyboardInterrupt) and not told_where and run.completed_passes():
        return InterruptionError(failure, _where_kept(run))
    return failure


def _nothing() -> None: ...


def _create(output: Path, spec: WorkloadSpec, peaks: Peaks | None) -> RunDirectory:
    """The run's directory with its first manifest."""
    import re
    from datetime import datetime

    from hwprof import __version__
    from hwprof.collector import clocks
    from hwprof.hardware import machine
    from hwprof.run.directory import RunDirectory
    from hwprof.run.manifest import Manifest

    now = datetime.now().astimezone()
    label = re.sub(r"[^\w.]+", "-", spec.model).encode()[:LONGEST_LABEL].decode(errors="ignore").strip("-.")
    manifest = Manifest(
        hwprof_version=__version__,
        name=f"{now:%Y%m%d-%H%M%S}-{label}",
        created=now.isoformat(timespec="seconds"),
        command=["hwprof", *sys.argv[1:]],
        machine=machine.describe(),
        clock=clocks.snapshot(),
        peaks=peaks,
        asked=msgspec.to_builtins(spec),
        folder=str(Path.cwd()),
    )
    return RunDirectory.create(output, manifest)


def _measure(
    run: RunDirectory,
    spec: WorkloadSpec,
    plans: Sequence[PassPlan],
    bars: Bars,
    server: ForkServer,
    files: FilesBeside,
) -> BaseException | None:
    """Carries the passes out. A failure is returned where there is something to report all the same, else raised: then
    nothing is left that looks like a run, unless its log says more than the message."""
    from hwprof.session import supervisor
    from hwprof.session.pass_record import PassError

    try:
        supervisor.carry_out(
            run, spec, plans, bars, server, files.look_ahead, when_measured=lambda: products.prepare(files)
        )
    except (PassError, KeyboardInterrupt) as error:
        if run.completed_passes():
            return error
        if isinstance(error, PassError) and error.foreseen:
            run.remove()
        raise
    return None


def _try_remedies(run: RunDirectory, bars: Bars, limit_s: float) -> BaseException | None:
    """A failure is returned: what was measured is reported all the same."""
    from hwprof.cli import try_remedies

    try:
        return try_remedies.carry_out(run, (), bars, limit_s).failure
    except try_remedies.NothingToTryError as nothing:
        click.echo(f"[try] nothing to try: {nothing}", err=True)  # no failure: the run is there
        return None
    except (HwprofError, KeyboardInterrupt) as error:
        return error


def _interrupted(run: RunDirectory, interrupt: KeyboardInterrupt) -> HwprofError:
    """What to tell who does not get to see the report: where the run is kept. Without a completed pass it is not. From
    here to the end of the process another Ctrl-C changes nothing: it would hide where."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from hwprof.run.atomic import remove_parts
    from hwprof.session.interruption import InterruptionError

    if not run.completed_passes():
        run.remove()
        return InterruptionError(interrupt)
    remove_parts(run.path)
    return InterruptionError(interrupt, _where_kept(run))


def _where_kept(run: RunDirectory) -> str:
    """And how to see its report."""
    without = "" if (run.path / "trace.pftrace").exists() else ", without a trace"
    name = products.name_of(run)
    return f"kept in {name}{without}: hwprof report {name}"
