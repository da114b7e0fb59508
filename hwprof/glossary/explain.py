"""What is to be said of a word: the glossary's term, the metrics of that name or group, and the event, on a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from hwprof.errors import UsageError
from hwprof.glossary import terms
from hwprof.glossary.terms import Term
from hwprof.hardware import machine
from hwprof.hardware.catalogue import GENERIC, Event, Microarchitecture, catalogue, microarchitectures
from hwprof.hardware.metrics import MODELLED_OPERANDS, MetricFacts, facts, independent, operands, recipes, sampled
from hwprof.hardware.selection import kinds_of_core, select
from hwprof.run.manifest import MetricDefinition

MOST_WORDS: Final = 5
"""Of a name."""

Brought = Mapping[str, Sequence[MetricDefinition]]
"""By collector: the metrics that it brings without the processor's counters."""

NOTHING: Final[Brought] = MappingProxyType({})


class OtherWay(msgspec.Struct, frozen=True, kw_only=True):
    """How a metric is made without the processor's counters; its title has the mark ``~`` then."""

    by: str  # the collector, or "sampled": of samples and instrumented code
    title: str
    meaning: str
    formula: str
    caveat: str | None


class ExplainedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric on this machine's processor; ``formula`` null: its counters do not give it, and ``missing`` says why
    (null as well where no processor's do). ``ways``: how collectors make it without counters."""

    name: str
    title: str
    unit: str
    meaning: str
    formula: str | None
    modelled: bool = False  # made of the model's shapes: its title has the mark
    caveat: str | None = None
    source: str | None = None
    missing: str | None = None
    ways: list[OtherWay] = []


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


def explain(words: Sequence[str], brought: Brought = NOTHING) -> tuple[list[Explanation], UsageError | None]:
    """Of each word what there is; several words in a row that make one name together are that name. Beside it the error
    that names the words that are no term, metric, group of metrics or event, with the nearest ones."""
    asked = [(word, _explained(word, brought)) for word in _grouped(words)]
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
    """The known words that a word consists of, else the names that are spelt most like it, else what it has of known
    words; of several words the first one each."""
    names = [*facts(), *_events()]
    known = {word: list(filter(_is_named, word.split())) for word in unknown}
    near = {
        word: parts if parts == word.split() else terms.nearest(word, names) or parts for word, parts in known.items()
    }
    meant = near[unknown[0]] if len(unknown) == 1 else [f"{names[0]} ({word})" for word, names in near.items() if names]
    question = f"did you mean {', '.join(meant)}? " if meant else ""
    return f"{question}hwprof explain --list has all words, hwprof events this processor's events"


def _explained(word: str, brought: Brought) -> Explanation | None:
    """None: nobody knows it."""
    term = terms.find(word)
    if term is not None and not terms.is_name(word) and _heads_a_column(word):  # the word without its unit is another
        term = None
    event = _event(word)
    names = _metrics(word, term)
    own = _of_collectors(word, brought)
    if term is None and event is None and not names and not own:
        return None
    return Explanation(
        word=word,
        processor=_processor(),
        term=term,
        metrics=[*(_metric(facts()[name], brought) for name in names), *own],
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
    marked = term is not None and spelling in terms.by_name()  # CPI~ has a term of its own
    own = _titled(word) or ([] if marked else _titled(terms.unmarked(word)))
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


def _heads_a_column(word: str) -> bool:
    """Whether it is a metric's title, unit and all."""
    return any(terms.normal(metric.title) == terms.normal(terms.unmarked(word)) for metric in facts().values())


def _metric(known: MetricFacts, brought: Brought) -> ExplainedMetric:
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
    ways = other_ways(known, brought)
    if ways and not any(known.name in recipes(kind) for kind in (*microarchitectures(), None)):
        missing = None  # nobody looks for it there
    return ExplainedMetric(
        name=known.name,
        title=known.title,
        unit=known.unit,
        meaning=found.meaning if found.meaning != known.title else meaning(known, ways),
        formula=found.formula.replace('"', "") or None,
        modelled=bool(MODELLED_OPERANDS & set(operands(found.formula))),
        caveat=found.caveat,
        source=found.source,
        missing=missing,
        ways=ways,
    )


def other_ways(known: MetricFacts, brought: Brought) -> list[OtherWay]:
    """How collectors make the metric without the processor's counters; one of a collector's own has another name, and
    the title."""
    made = [("sampled", metric) for metric in sampled() if metric.name == known.name]
    made += [
        (collector, metric)
        for collector, definitions in brought.items()
        for metric in definitions
        if metric.name == known.name or (metric.name not in facts() and metric.title == known.title)
    ]
    return [_way(by, metric) for by, metric in made]


def _of_collectors(word: str, brought: Brought) -> list[ExplainedMetric]:
    """A collector's own metrics of that name, or of that title where it is no other metric's."""
    titles = {terms.normal(metric.title) for metric in facts().values()}
    spelling, title = terms.normal(word), terms.normal(terms.unmarked(word))
    return [
        ExplainedMetric(
            name=metric.name,
            title=metric.title,
            unit=metric.unit,
            meaning=metric.meaning,
            formula=None,
            ways=[_way(collector, metric)],
        )
        for collector, definitions in brought.items()
        for metric in definitions
        if metric.name not in facts()
        and (spelling == terms.normal(metric.name) or title == terms.normal(metric.title) not in titles)
    ]


def _way(by: str, metric: MetricDefinition) -> OtherWay:
    return OtherWay(
        by=by,
        title=f"{metric.title}~",
        meaning=metric.meaning,
        formula=metric.formula.replace('"', ""),
        caveat=metric.caveat,
    )


def meaning(known: MetricFacts, ways: Sequence[OtherWay]) -> str:
    """What the metric is where this processor's file does not say: in general, as another source makes it, or as other
    processors' files say."""
    elsewhere = [recipes(kind).get(known.name) for kind in (*microarchitectures(), None)]
    said = [known.meaning, *(way.meaning for way in ways), *(recipe.meaning for recipe in elsewhere if recipe)]
    return next((text for text in said if text), known.title)


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
