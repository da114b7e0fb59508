"""The list of events on a terminal: two lines an entry at 80 columns, a table from 120 on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hwprof.report.document.events import EventList, ListedEvent, ListedMetric
from hwprof.report.text.console import Lines
from hwprof.report.text.figures import enumerate_words, plural
from hwprof.unavailable import explain

WIDE: Final = 120
OTHER: Final = "other events"
COUNTED_TIME: Final = "counted-time: ns of the iterations that count layers (FLOPs per ns = GFLOP/s)"


def show(listed: EventList, console: Console) -> None:
    """Prints it: what the processor is, its metrics with their events by group, the sets, what it does not have."""
    _head(listed, console)
    for group, metrics, events in _by_group(listed):
        console.print()
        console.print(Text(group, "bold"))
        if metrics:
            _metrics(metrics, listed, console)
        if events:
            _events(events, listed, console)
    _sets(listed, console)
    _tail(listed, console)


def _head(listed: EventList, console: Console) -> None:
    if not listed.microarchitectures:  # how many counters it has, nobody knows
        _put(Text.assemble((listed.processor, "bold"), ": not in the event catalogue, generic events only"), console)
    else:
        _processor(listed, console)
    if listed.unavailable is not None:
        _put(Text(f"hardware events {listed.unavailable}", "red"), console)
        _put(Text("from the catalogue:"), console)
    elif not listed.this_machine:
        _put(Text("from the catalogue, not from this machine", "dim"), console)


def _processor(listed: EventList, console: Console) -> None:
    """By the catalogue."""
    counters = enumerate_words(
        [
            plural(number, "general counter") + (f" of {pmu}" if len(listed.general_counters) > 1 else "")
            for pmu, number in listed.general_counters.items()
        ]
    )
    files = ", ".join(listed.microarchitectures)
    _put(Text.assemble((listed.processor, "bold"), f" ({files}): {counters} per thread"), console)


def _put(text: Text, console: Console, indent: int = 0, hanging: int = 0) -> None:
    """The text in the console's width, its lines indented; those after the first one by ``hanging`` more."""
    first, *others = text.wrap(console, console.width - indent - hanging) or [Text()]
    for line, by in ((first, indent), *((line, indent + hanging) for line in others)):
        line.rstrip()
        console.print(Text.assemble(" " * by, line), no_wrap=True, crop=False)


def _by_group(listed: EventList) -> list[tuple[str, list[ListedMetric], list[ListedEvent]]]:
    """Groups with their metrics, and the events that no group before needed."""
    left = {event.name: event for event in listed.events}
    sections = []
    for group in dict.fromkeys(metric.group for metric in listed.metrics):
        metrics = [metric for metric in listed.metrics if metric.group == group]
        needed = dict.fromkeys(name for metric in metrics for name in metric.events)
        events = [left.pop(name) for name in needed if name in left and left[name].kind == "hardware"]
        sections.append((group, metrics, events))
    others = [event for event in left.values() if event.kind == "hardware"]
    software = [event for event in left.values() if event.kind == "software"]
    return [*sections, *((title, [], events) for title, events in ((OTHER, others), ("software", software)) if events)]


def _metrics(metrics: Sequence[ListedMetric], listed: EventList, console: Console) -> None:
    if console.width >= WIDE:
        grid = _grid("metric", "unit", "formula", "meaning", ratios=(None, None, 4, 5))
        for metric in metrics:
            name = _name(metric.name, metric.available, listed)
            formula = Text(_readable(metric.formula))
            grid.add_row(name, Text(metric.unit), formula, _explained(metric.meaning, metric.caveat))
        console.print(Padding(grid, (0, 0, 0, 2)))
        return
    for metric in metrics:
        _put(Text.assemble(_name(metric.name, metric.available, listed), f"  {metric.unit}"), console, 2, 2)
        _put(Text(f"= {_readable(metric.formula)}"), console, 4, 2)
        _put(_explained(metric.meaning, metric.caveat), console, 4)


def _events(events: Sequence[ListedEvent], listed: EventList, console: Console) -> None:
    if console.width >= WIDE:
        grid = _grid("event", "takes", "meaning", ratios=(None, None, 1))
        for event in events:
            name = _name(event.name, event.unavailable is None, listed)
            if event.code != event.name:
                name = Lines.assemble(name, "\n", (event.code, "dim"))
            grid.add_row(name, Text(_takes(event)), _explained_event(event, listed))
        console.print(Padding(grid, (0, 0, 0, 2)))
        return
    for event in events:
        _put(_name(event.name, event.unavailable is None, listed), console, 2)
        if event.kind == "hardware":
            code = "" if event.code == event.name else f"{event.code}  "
            _put(Text(f"{code}{_takes(event)}"), console, 4, 2)
        _put(_explained_event(event, listed), console, 4)


def _sets(listed: EventList, console: Console) -> None:
    sets = [one for one in listed.sets if one.events]
    if not sets:
        return
    console.print()
    console.print(Text(f"{plural(len(sets), 'event set')}, one per iteration", "bold"))
    for number, one in enumerate(sets, 1):
        used = enumerate_words(
            [
                f"{count} of {listed.general_counters[pmu]}" + (f" of {pmu}" if len(one.counters) > 1 else "")
                for pmu, count in one.counters.items()
            ]
        )
        _put(Text.assemble(f"{number}  ", ", ".join(one.events), (f"  ({used} counters)", "dim")), console, 2, 3)


def _tail(listed: EventList, console: Console) -> None:
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for name, why in listed.dropped.items():
        reasons.setdefault((why.reason, why.remedy), []).append(name)
    if reasons:
        console.print()
        console.print(Text("not available", "bold"))
    for (reason, remedy), names in reasons.items():
        _put(Text(f"{', '.join(names)}: {explain(reason, remedy)}"), console, 2, 2)
    timed = any("counted-time" in metric.events for metric in listed.metrics)
    notes = [*([COUNTED_TIME] if timed else []), *listed.notes]
    if notes:
        console.print()
        console.print(Text("notes", "bold"))
    for note in notes:
        _put(Text(note), console, 2, 2)


def _grid(*titles: str, ratios: Sequence[int | None]) -> Table:
    grid = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim", expand=True
    )
    for title, ratio in zip(titles, ratios, strict=True):
        grid.add_column(title, ratio=ratio, overflow="fold", no_wrap=ratio is None)
    return grid


def _name(name: str, available: bool, listed: EventList) -> Text:
    """Marked where it cannot be had on this machine."""
    if available or not listed.this_machine:
        return Text(name, "bold")
    return Text.assemble(("no ", "red"), (name, "bold"))


def _explained(meaning: str, caveat: str | None) -> Text:
    return Text.assemble(meaning, (f" ({caveat})" if caveat else "", "dim"))


def _explained_event(event: ListedEvent, listed: EventList) -> Text:
    """Its meaning and caveat; why it does not open, where that is not the reason for all."""
    text = _explained(event.meaning, event.caveat)
    if event.unavailable is not None and event.unavailable != listed.unavailable:
        text.append(f"; {event.unavailable}", "red")
    return text


def _takes(event: ListedEvent) -> str:
    if event.kind == "software":
        return "no counter"
    if event.scope == "socket":
        return "whole machine"
    own = "own counter" if event.counters == 0 else plural(event.counters, "counter")
    where = f" ({', '.join(map(str, event.only))})" if event.only else ""
    return own + where + (", whole core" if event.scope == "core" else "")


def _readable(formula: str) -> str:
    """The formula without the quotes that SQL wants."""
    return formula.replace('"', "")
