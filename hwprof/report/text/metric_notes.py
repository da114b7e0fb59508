"""What is to be said of metrics: the marks at their titles, what these mean, and what to bear in mind."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from hwprof.analysis.owners import OWN
from hwprof.hardware.catalogue import GENERIC, catalogue
from hwprof.hardware.metrics import facts
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layers
from hwprof.report.document.metrics import MetricInfo
from hwprof.report.text import choice, figures
from hwprof.report.text.figures import Glyphs
from hwprof.report.text.footnotes import fitting

NAMES: Final = 6
"""How many names a footnote lists."""

FULL: Final = 0.999
"""From this share of running time on, a counter counts as not multiplexed."""


def marks(metric: MetricInfo, glyphs: Glyphs) -> str:
    """What a header says of how far to trust the column."""
    return (
        (glyphs.modelled if metric.provenance == "modelled" else "")
        + (glyphs.instrumented if choice.is_instrumented(metric) else "")
        + (glyphs.multiplexed if metric.missing is None and metric.running_share < FULL else "")
        + ("" if metric.same_iterations else glyphs.different_iterations)
    )


def reliability(metrics: Sequence[MetricInfo], document: Document, glyphs: Glyphs, *, whole: bool = True) -> list[str]:
    """What the marks at the titles of these (measured) metrics mean; ``whole``: why the whole has a dash, too."""
    notes = []
    modelled = [metric.formula for metric in metrics if metric.provenance == "modelled"]
    if modelled:
        words = {"macs": "2 FLOPs per MAC", "bytes": "bytes of tensors"}
        made = ", ".join(what for name, what in words.items() if any(f'"{name}"' in formula for formula in modelled))
        over = "; over measured time" if any('"time"' in formula for formula in modelled) else ""
        notes.append(f"{glyphs.modelled} modelled: {made}{over}; {glyphs.dash} unknown")
    if whole:
        notes += _unknown_of_the_whole(metrics, document, glyphs)
    sources = {source for metric in metrics for source in metric.sources if source in choice.NOT_BY_HARDWARE}
    if sources:
        notes.append(f"{glyphs.instrumented} {figures.enumerate_words(sorted(sources))}: no hardware counters")
    used = {name for metric in metrics for name in event_names(metric, document)}
    shared = [event for event in document.events if event.name in used and event.running_share < FULL]
    if shared:
        parts = figures.some([f"{event.name} {event.running_share:.0%}" for event in shared], 2)
        notes.append(f"{glyphs.multiplexed} multiplexed, scaled up; counters ran at least: {parts}")
    if any(not metric.same_iterations for metric in metrics):
        notes.append(f"{glyphs.different_iterations} from different iterations: no event set has all of its events")
    return notes


def _unknown_of_the_whole(metrics: Sequence[MetricInfo], document: Document, glyphs: Glyphs) -> list[str]:
    """Whose products, or bytes, are not known, so that those of the whole are not either."""
    layers = document.part(Layers)
    if layers is None or layers.whole is None:
        return []
    unknown = [
        (title, name)
        for title, name in (("MACs", "macs"), ("bytes", "bytes"))
        if getattr(layers.whole, name) is None and any(f'"{name}"' in metric.formula for metric in metrics)
    ]
    if unknown and layers.irregular:
        called = figures.some([*layers.irregular], 2)
        return [f"{glyphs.dash} the {document.whole}: iterations differ in work, not each calls {called} alike"]
    return [
        f"{glyphs.dash} {title} not known of {_whose(name, layers)}, so neither of the {document.whole}"
        for title, name in unknown
    ]


def _whose(name: str, layers: Layers) -> str:
    """The types of the layers, and of the modules' own code, that take time and whose figure is not known. Bytes: own
    code without products has none that belong to any."""
    rows = [row for row in layers.rows if row.time is not None and getattr(row, name) is None]
    if name == "bytes":
        rows = [row for row in rows if not (row.own and row.macs == 0)]
    types = sorted({f"{row.type or ''}{OWN if row.own and name == 'bytes' else ''}" for row in rows})
    return figures.some(types, NAMES) if types else "operators outside of leaf layers"


def caveats(metrics: Sequence[MetricInfo], glyphs: Glyphs, *, meanings: bool = True) -> list[str]:
    """What metrics mean on this processor, where it has a meaning of its own, and what to bear in mind (or only that).

    Metrics of which the same is to be said share a line.
    """
    general = {metric.name: metric.meaning for metric in facts().values() if metric.formula is None}
    notes: dict[tuple[str, str], list[MetricInfo]] = {}
    for metric in metrics:
        own = meanings and metric.name in general and metric.meaning not in (general[metric.name], metric.title)
        words = (metric.meaning if own else "", metric.caveat or "")
        if any(words) and metric.scope == "threads":
            notes.setdefault(words, []).append(metric)
    return [_caveat(words, members, glyphs) for words, members in notes.items()]


def _caveat(words: tuple[str, str], metrics: Sequence[MetricInfo], glyphs: Glyphs) -> str:
    """As much as one line holds: meaning and caveat, the meaning, the formula, or where to read of it."""
    meaning, caveat = words
    titles = ", ".join(metric.title + marks(metric, glyphs) for metric in metrics)
    wordings = [f"{titles}: {meaning} ({caveat})" if meaning and caveat else f"{titles}: {meaning or caveat}"]
    if meaning:
        wordings.append(f"{titles}: {meaning}")
    if len(metrics) == 1:
        wordings.append(f"{titles} = {metrics[0].formula}".replace('"', ""))
    return fitting(*wordings, f"{titles}: hwprof explain {shlex.quote(metrics[0].name)}")


def event_names(metric: MetricInfo, document: Document) -> list[str]:
    """The run's events that a metric is made of."""
    return [event.name for event in document.events if f'"{event.name}"' in _without_threads(metric.formula)]


def meanings(names: set[str], document: Document) -> list[str]:
    """What the names of hardware events stand for on that machine."""
    return [
        fitting(f"{event.name}: {event.meaning}", f"{event.name}: hwprof explain {shlex.quote(event.name)}")
        for event in document.events
        if event.name in names and event.kind == "hardware" and event.meaning
    ]


def generic_events(metrics: Sequence[MetricInfo], document: Document) -> set[str]:
    """The events of these metrics whose names are the kernel's: what they count depends on the processor."""
    generic = catalogue(GENERIC).named()
    return {name for metric in metrics for name in event_names(metric, document) if name in generic}


def _without_threads(formula: str) -> str:
    return formula.replace("@main", "").replace("@workers", "")
