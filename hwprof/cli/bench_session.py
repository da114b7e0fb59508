"""A bench from its folder on: what is not done is done, kept, copied and shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hwprof.cli.collector_options import flags_of
from hwprof.cli.progress import Bars
from hwprof.cli.streams import print_csv, print_json
from hwprof.errors import HwprofError, UsageError
from hwprof.printable import one_line

if TYPE_CHECKING:
    from hwprof.bench.matrix import Case
    from hwprof.bench.mirror import Mirror
    from hwprof.bench.result import Result
    from hwprof.bench.rows import Row
    from hwprof.bench.store import Plan, Store


def opened(place: Path | str, root: Path, power: dict[str, dict[str, Any]], *, here: bool) -> Store:
    """The bench in a folder, or of the copy at a URL, which is brought below ``root`` first. ``here``: this machine
    does its cases; ``power``: options of meters that the user has given again, for that of a copy. Raises
    ``UsageError`` where it cannot go on here, and ``HwprofError``."""
    from hwprof.bench.mirror import Mirror
    from hwprof.bench.store import Store

    if isinstance(place, Path):
        store = Store.open(place)
        _require_same_place(store.plan, here=here)
        return store

    def allow(plan: Plan) -> None:
        _require_same_place(plan, here=here)
        _require_harmless(plan, power)

    def tell(line: str) -> None:
        click.echo(one_line(line), err=True)

    return Store.open(Mirror(place).fetch(root, allow, tell))


def carry_out(store: Store, form: str, width: int | None, address: str | None) -> None:
    """Those of its cases that are not done, and shows all. Raises ``HwprofError``."""
    from hwprof.bench import files
    from hwprof.bench.mirror import Mirror
    from hwprof.bench.rows import rows_of

    if not store.plan.cases:
        raise HwprofError(f"{store.path} has no cases", "hwprof bench again")
    mirror = Mirror(store.plan.store) if store.plan.store is not None else None
    ended, late = _measured(store, address, mirror)
    of_machines = {name: used.peaks for name, used in store.machines().items()}
    rows = rows_of(store.results(), store.plan.peaks, of_machines)
    unwritten: HwprofError | None = None
    if rows:
        written, unwritten = files.write(store, rows)
        _show(store, rows, form, width, written)  # what was measured, whatever could not be written
    anything = bool(rows) or ended is None
    behind = _copied(mirror, store, late, address) if mirror is not None and anything else None
    for failure in (ended, unwritten, behind):
        if failure is not None:
            raise failure
    if rows and all(row.failure is not None for row in rows):
        raise HwprofError("no case could be measured")


def discard_unbegun(store: Store) -> None:
    """Takes it away, and its copy, where no case was begun."""
    from hwprof.bench.mirror import Mirror

    if not store.stays:
        store.discard_unbegun()
        if store.plan.store is not None:
            Mirror(store.plan.store).discard_unbegun()


def _measured(store: Store, address: str | None, mirror: Mirror | None) -> tuple[HwprofError | None, list[Case]]:
    """Why it ended before all was done, and cases that could not be copied."""
    from hwprof.report.text.figures import plural
    from hwprof.session.interruption import EndedBySignal, InterruptionError, signals_interrupt

    came: list[int] = []
    late: list[Case] = []
    with Bars() as bars:

        def told(result: Result) -> None:
            if result.failure is not None:
                bars.tell("bench", f"{result.case.label}: {one_line(result.failure.message)}")
            if mirror is not None:
                try:
                    mirror.put_case(store, result.case)
                except HwprofError as error:
                    late.append(result.case)
                    bars.tell("bench", f"{error.message}; again at the end")

        try:
            with store.alone(), signals_interrupt() as came:
                store.tidy()
                try:
                    _carry_out_all(store, address, bars, mirror, told)
                except HwprofError as error:  # the cluster, or the room on the disk, is gone
                    return error, late
        except KeyboardInterrupt as interrupt:
            ended = EndedBySignal(came[0]) if came else interrupt  # a library may have raised its own
            goes_on = f"{plural(len(store.left()), 'case')} left: {store.again(address)} goes on"
            return InterruptionError(ended, goes_on if store.stays else ""), late
    return None, late


def _copied(mirror: Mirror, store: Store, late: Sequence[Case], address: str | None) -> HwprofError | None:
    """The tables, and cases that could not be copied before; why it is not."""
    try:
        mirror.put_all(store, done=late)
    except HwprofError as error:
        return HwprofError(error.message, f"{store.again(address)} copies it again")
    click.echo(f"copied to {one_line(mirror.told)}", err=True)
    return None


def _carry_out_all(
    store: Store, address: str | None, bars: Bars, mirror: Mirror | None, told: Callable[[Result], None]
) -> None:
    if mirror is not None:
        bars.phase("bench", f"copying to {mirror.told}", None)
        mirror.put_all(store, done=[one.case for one in store.results()])
    if address is None:
        from hwprof.bench import campaign

        campaign.carry_out_all(store, bars, told)
    else:
        from hwprof.bench import cluster

        cluster.carry_out_all(store, address, bars, told)


def _require_harmless(plan: Plan, power: dict[str, dict[str, Any]]) -> None:
    """Raises ``UsageError`` where somebody else's plan would have a program started, or a library loaded, that the user
    has not named."""
    from hwprof.remedies import catalogue

    if plan.settings.power != power:
        remedy = f"{flags_of(plan.settings.power) or 'no such option'} beside --resume, if you trust that"
        raise UsageError("a copy's power meter is read only as you say yourself", remedy)
    for case in plan.cases:
        if case.environment != catalogue.environment_of(case.workload.variants):
            raise UsageError(
                f"{case.label}: its environment is not that of its variant here", "hwprof bench again, without --resume"
            )


def _require_same_place(plan: Plan, *, here: bool) -> None:
    """Raises ``UsageError`` where a bench cannot go on: its figures are of one machine, and its paths of one folder."""
    from hwprof.hardware import machine

    this, there = machine.describe(), plan.machine
    if here and (this.hostname, this.processor) != (there.hostname, there.processor):
        raise UsageError("the bench was begun on another machine", "hwprof bench again, here")
    if plan.folder != str(Path.cwd()):
        raise UsageError("the bench was begun from another folder", "cd there first")


def _show(store: Store, rows: Sequence[Row], form: str, width: int | None, written: Sequence[str]) -> None:
    from hwprof.bench import files, table

    if form == "json":
        print_json(files.as_json(store, rows).decode())
    elif form == "csv":
        print_csv(table.csv_table(rows).text())
    elif form == "markdown":
        click.echo(table.markdown(rows, files.heading(store, rows)), nl=False)
    else:
        from hwprof.report.text.console import make_console

        console = make_console(width)
        for line in files.heading(store, rows):
            click.echo(line)
        click.echo()
        table.show(rows, console)
        place = one_line(str(store.path))
        click.echo(f"\nkept in {place}: {', '.join(written)}" if written else f"\n{place} has the cases alone")
        click.echo("steadier machine: python -m pyperf system tune; two benches: python -m pyperf compare_to")
