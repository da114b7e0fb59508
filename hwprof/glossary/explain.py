"""What is to be said of a word: the glossary's term, the metrics of that name or group, and the event, on a machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from hwprof.errors import UsageError
from hwprof.glossary import terms
from hwprof.glossary.terms import Term
from hwprof.hardware import machine
from hwprof.hardware.catalogue import GENERIC, Event, Microarchitecture, catalogue, microarchitectures
from hwprof.hardware.metrics import MODELLED_OPERANDS, MetricFacts, facts, independent, operands
from hwprof.hardware.selection import kinds_of_core, select

MOST_WORDS: Final = 5
"""Of a name."""


class ExplainedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric on this machine's processor; ``formula`` null: its counters do not give it, and ``missing`` says why."""

    name: str
    title: str
    unit: str
    meaning: str
    formula: str | None
    modelled: bool = False  # made of the model's shapes: its title has the mark
    caveat: str | None = None
    source: str | None = None
    missing: str | None = None


class ExplainedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A hardware or software event of this machine's processor, or of the ``others`` (their names)."""

    name: str
    meaning: str
    unit: str
    caveat: str | None = None
    source: str | None = None
    others: tuple[str, ...] = ()  # processors that have it, where this one does not


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of one word; at least one part is there."""

    word: str
    processor: str
    term: Term | None
    metrics: list[ExplainedMetric]
    event: ExplainedEvent | None


def explain(words: Sequence[str]) -> tuple[list[Explanation], UsageError | None]:
    """Of each word what there is; several words in a row that make one name together are that name. Beside it the error
    that names the words that are no term, metric, group of metrics or event, with the nearest ones."""
    asked = [(word, _explained(word)) for word in _grouped(words)]
    unknown = list(dict.fromkeys(word for word, found in asked if found is None))
    error = UsageError(f"nothing is known of {', '.join(map(repr, unknown))}", _hint(unknown)) if unknown else None
    return [found for _, found in asked if found is not None], error


def _grouped(words: Sequence[str]) -> Iterator[str]:
    """The words, with those joined that nobody put into quotes: the longest names first."""
    begin = 0
    while begin < len(words):
        ends = range(min(len(words), begin + MOST_WORDS), begin + 1, -1)
        end = next((end for end in ends if _is_named(" ".join(words[begin:end]))), begin + 1)
        yield " ".join(words[begin:end])
        begin = end


def is_known(word: str) -> bool:
    """Whether there is anything to be said of it."""
    return _is_named(word) or _event(word) is not None


def _is_named(word: str) -> bool:
    """Whether it is a term, a metric or a group of these: what may have blanks."""
    term = terms.find(word)
    return term is not None or bool(_metrics(word, term))


def _hint(unknown: Sequence[str]) -> str:
    """The names that are spelt most like a word, else what it has of known words; of several words the first one
    each."""
    names = [*facts(), *_events()]
    near = {word: terms.nearest(word, names) or list(filter(_is_named, word.split())) for word in unknown}
    meant = near[unknown[0]] if len(unknown) == 1 else [f"{names[0]} ({word})" for word, names in near.items() if names]
    question = f"did you mean {', '.join(meant)}? " if meant else ""
    return f"{question}hwprof explain --list has all words, hwprof events this processor's events"


def _explained(word: str) -> Explanation | None:
    """None: nobody knows it."""
    term = terms.find(word)
    event = _event(word)
    names = _metrics(word, term)
    if term is None and event is None and not names:
        return None
    return Explanation(
        word=word,
        processor=_processor(),
        term=term,
        metrics=[_metric(facts()[name]) for name in names],
        event=event,
    )


def _metrics(word: str, term: Term | None) -> list[str]:
    """The metric of that name, else of the term, else of that title, else those of the group of that name."""
    spelling = terms.normal(word)
    named = [name for name in facts() if terms.normal(name) == spelling]
    if named:
        return named
    if term is not None and term.metric is not None:
        return [term.metric]
    own = _titled(word) or (_titled(terms.unmarked(word)) if term is None else [])
    if own:
        return own
    return [name for name, metric in facts().items() if terms.normal(metric.group) == spelling]


def _titled(word: str) -> list[str]:
    """The metrics of that name or title."""
    spelling = terms.normal(word)
    return [
        name
        for name, metric in facts().items()
        if spelling
        in map(terms.normal, (name, metric.title, metric.title.removesuffix(" %"), terms.unmarked(metric.title)))
    ]


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
        modelled=bool(MODELLED_OPERANDS & set(operands(found.formula))),
        caveat=found.caveat,
        source=found.source,
        missing=missing,
    )


def _event(word: str) -> ExplainedEvent | None:
    """The event of that very name: of this processor's file or of the kernel's, else of other processors'."""
    found = _events().get(word)
    others: list[str] = []
    if found is None:
        having = [(one.processor.name, event) for one in microarchitectures() if (event := _named(one, word))]
        others = list(dict.fromkeys(name for name, _ in having))
        found = having[0][1] if having else None
    if found is None:
        return None
    return ExplainedEvent(
        name=found.name,
        meaning=found.meaning,
        unit=found.unit,
        caveat=found.caveat,
        source=found.source,
        others=tuple(others),
    )


def _events() -> dict[str, Event]:
    """The kernel's events and those of this machine's processor, by name and alias."""
    kinds = [kind.known.catalogue for kind in kinds_of_core(machine.describe(), on_paper=True) if kind.known]
    return {name: event for file in (catalogue(GENERIC), *reversed(kinds)) for name, event in file.named().items()}


def _named(processor: Microarchitecture, word: str) -> Event | None:
    return processor.catalogue.named().get(word)


def _processor() -> str:
    known = [kind.known for kind in kinds_of_core(machine.describe(), on_paper=True)]
    names = [kind.processor.name for kind in known if kind is not None]
    return " / ".join(names) or machine.describe().processor
