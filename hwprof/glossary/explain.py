"""What is to be said of a word: the glossary's term, the metrics of that name or group, and the event, on a machine."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hwprof.errors import UsageError
from hwprof.glossary import terms
from hwprof.glossary.terms import Term
from hwprof.hardware import machine
from hwprof.hardware.catalogue import GENERIC, catalogue
from hwprof.hardware.metrics import MetricFacts, facts, independent
from hwprof.hardware.selection import kinds_of_core, select


class ExplainedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric on this machine's processor; ``formula`` null: its counters do not give it, and ``missing`` says why."""

    name: str
    title: str
    unit: str
    meaning: str
    formula: str | None
    caveat: str | None = None
    source: str | None = None
    missing: str | None = None


class ExplainedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A hardware or software event of this machine's processor."""

    name: str
    meaning: str
    unit: str
    caveat: str | None = None
    source: str | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of one word; at least one part is there."""

    word: str
    processor: str
    term: Term | None
    metrics: list[ExplainedMetric]
    event: ExplainedEvent | None


def explain(words: Sequence[str]) -> list[Explanation]:
    """Of each word what there is; several words that make one term together are that term.

    Raises ``UsageError`` for a word that is no term, metric, group of metrics or event, with the nearest ones.
    """
    together = " ".join(words)
    if len(words) > 1 and terms.find(together) is not None:
        words = [together]
    return [_explained(word) for word in words]


def _explained(word: str) -> Explanation:
    term = terms.find(word)
    event = _event(word)
    names = _metrics(word, term)
    if term is None and event is None and not names:
        near = terms.nearest(word, facts())
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise UsageError(f"the glossary has no {word!r}", f"{hint}hwprof explain --list has all words")
    return Explanation(
        word=word,
        processor=_processor(),
        term=term,
        metrics=[_metric(facts()[name]) for name in names],
        event=event,
    )


def _metrics(word: str, term: Term | None) -> list[str]:
    """The metric of that name or title, else of the term, else those of the group of that name."""
    spelling = terms.normal(word)
    own = [
        name
        for name, metric in facts().items()
        if spelling in map(terms.normal, (name, metric.title, metric.title.removesuffix(" %")))
    ]
    if own:
        return own
    if term is not None and term.metric is not None:
        return [term.metric]
    return [name for name, metric in facts().items() if terms.normal(metric.group) == spelling]


def _metric(known: MetricFacts) -> ExplainedMetric:
    """On paper: as the processor's file has it, whether or not this machine lets it count."""
    missing = None
    if known.formula is not None:
        found = next(metric for metric in independent() if metric.name == known.name)
    else:
        selection = select([known.name], machine.describe(), machine.ROOT, on_paper=True)
        own = next((metric for metric in selection.metrics if metric.name == known.name), None)
        if own is None:
            why = selection.dropped.get(known.name)
            missing = why.reason if why is not None else "no event of this processor gives it"
        found = own or known.defined("")
    return ExplainedMetric(
        name=known.name,
        title=known.title,
        unit=known.unit,
        meaning=found.meaning,
        formula=found.formula.replace('"', "") or None,
        caveat=found.caveat,
        source=found.source,
        missing=missing,
    )


def _event(word: str) -> ExplainedEvent | None:
    """The event of that very name, of this processor's file or of the kernel's."""
    kinds = [kind.known.catalogue for kind in kinds_of_core(machine.describe(), on_paper=True) if kind.known]
    for file in (*kinds, catalogue(GENERIC)):
        found = file.named().get(word)
        if found is not None:
            return ExplainedEvent(
                name=found.name, meaning=found.meaning, unit=found.unit, caveat=found.caveat, source=found.source
            )
    return None


def _processor() -> str:
    known = [kind.known for kind in kinds_of_core(machine.describe(), on_paper=True)]
    names = [kind.processor.name for kind in known if kind is not None]
    return " / ".join(names) or machine.describe().processor
