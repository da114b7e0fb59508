"""``hwprof events``: what the processor can count, what follows from it, and in which sets it would be counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hwprof.cli.streams import print_json
from hwprof.cli.text_width import width_option
from hwprof.errors import HwprofError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hwprof.collector.registry import Surveyed
    from hwprof.hardware.countable import Countable
    from hwprof.report.document.events import EventList
    from hwprof.run.manifest import Machine
    from hwprof.unavailable import Unavailable


@click.command("events")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every metric and event of the processor.")
@click.option("--processor", metavar="ID", help="Another processor, from the catalogue: amd-zen4, …")
@click.option("--list", "list_processors", is_flag=True, help="The processors that the catalogue knows.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@width_option
def events_command(
    names: tuple[str, ...],
    everything: bool,
    processor: str | None,
    list_processors: bool,
    form: str,
    width: int | None,
) -> None:
    """Show what this processor's counters count.

    And the metrics that are made of it. NAMES are what `hwprof collect --events` takes: groups (cache, flops, topdown,
    …), metrics, events, or perf's raw syntax (r20c7, cpu/event=0xc7,umask=0x20/u). Without any: what is counted by
    default.

    \b
    Examples:
      hwprof events
      hwprof events cache flops
      hwprof events --processor intel-sapphire-rapids topdown
      hwprof events --all --format json | jq '.events[] | {name, code}'
    """
    if list_processors:
        _list(form)
        return
    from hwprof.report.document import events as event_list
    from hwprof.report.text import events as event_view
    from hwprof.report.text.console import make_console

    listed = _of_processor(processor, names, everything) if processor else _of_this_machine(names, everything)
    if form == "json":
        print_json(event_list.as_json(listed))
    else:
        event_view.show(listed, make_console(width))


def _list(form: str) -> None:
    import orjson

    from hwprof.hardware.catalogue import microarchitectures

    known = {kind.id: kind.processor.name for kind in microarchitectures()}
    if form == "json":
        click.echo(orjson.dumps(known).decode())
    else:
        longest = max(map(len, known))
        click.echo("\n".join(f"{name:<{longest}}  {title}" for name, title in known.items()))


def _of_processor(processor: str, names: tuple[str, ...], everything: bool) -> EventList:
    """The catalogue's file of that id, as if this machine had such cores."""
    from hwprof.hardware.catalogue import microarchitecture
    from hwprof.hardware.cores import machine_of

    known = microarchitecture(processor)
    if known is None:
        raise UsageError(f"the catalogue knows no processor {processor!r}", "hwprof events --list shows those it knows")
    return _listed(machine_of(known), Path(os.devnull), names, everything, None, None)


def _of_this_machine(names: tuple[str, ...], everything: bool) -> EventList:
    from hwprof.hardware import machine, probing
    from hwprof.run.details import CountingDetail

    counter = _preferred()
    detail, why = counter.availability.detail, counter.availability.unavailable
    counted = detail if isinstance(detail, CountingDetail) else CountingDetail()
    reported = counted.unavailable
    none_at_all = why
    if why is None and not counted.hardware:
        none_at_all = reported.get("cycles")

    def why_not(countable: Countable) -> Unavailable | None:
        if none_at_all is not None and (countable.kind == "hardware" or why is not None):
            return none_at_all
        return reported.get(countable.name) or probing.why_not(countable)

    listed = _listed(machine.describe(), machine.ROOT, names, everything, why_not, none_at_all)
    if none_at_all is not None:
        listed.notes[:0] = _without_pmu()
    return listed


def _preferred() -> Surveyed:
    """The counter that counts unless the user asks for another one."""
    from hwprof.collector import registry

    names = [declared.name for declared in registry.declarations() if declared.preferred]
    if not names:
        raise HwprofError("no counter is installed that could be asked", "reinstall hwprof")
    return registry.survey(names)[0]


def _without_pmu() -> list[str]:
    """What counts where hardware events are not available."""
    from hwprof.collector import registry

    notes = []
    for found in registry.survey([declared.name for declared in registry.declarations() if declared.fallback]):
        if found.availability.unavailable is None:
            notes.append(f"without a PMU, hwprof collect gives CPI by layer from the counter {found.name}")
        else:
            why = found.availability.unavailable
            notes.append(f"the counter {found.name}, which needs no PMU, is not available: {why.explanation}")
    return notes


def _listed(
    machine: Machine,
    root: Path,
    names: tuple[str, ...],
    everything: bool,
    why_not: Callable[[Countable], Unavailable | None] | None,
    none_at_all: Unavailable | None,
) -> EventList:
    from hwprof.hardware.selection import every_name, kinds_of_core, select
    from hwprof.hardware.syntax import parse
    from hwprof.report.document import events as event_list

    cores = kinds_of_core(machine, root)
    wanted = [item for text in names for item in parse(text)]
    if everything:
        wanted += every_name(cores)
    selection = select(wanted or None, machine, root, on_paper=True)
    return event_list.build(machine, cores, selection, why_not, none_at_all)
