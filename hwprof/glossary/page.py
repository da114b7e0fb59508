"""The glossary as text: entries on a terminal, the list of words, and the documentation's page (Markdown)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from hwprof.glossary.explain import Brought, ExplainedEvent, ExplainedMetric, Explanation, meaning, other_ways
from hwprof.glossary.terms import Term, terms
from hwprof.hardware.metrics import facts

LABEL: Final = 13
"""Characters of the column of labels."""

COMMAND: Final = "hwprof explain --list --format markdown > docs/glossary.md"


def entry(found: Explanation, width: int) -> str:
    """One word's explanation in so many columns."""
    lines: list[str] = []
    if found.term is not None:
        lines += _head(found.term.term, found.term.meaning, width)
        lines += _lines(_fields(found.term), width)
    for metric in found.metrics:
        if lines:
            lines.append("")
        lines += _head(f"metric {metric.name}", f"{_title(metric)}: {metric.meaning}", width)
        lines += _lines(_metric_fields(metric, found.processor), width)
    if found.event is not None:
        if lines:
            lines.append("")
        lines += _head(f"event {found.event.name}", found.event.meaning, width)
        lines += _lines(_event_fields(found.event, found.processor), width)
    return "\n".join(lines)


def word_list(width: int) -> str:
    """Every term with its meaning, and the names of the metrics."""
    longest = max(len(term.term) for term in terms())
    lines = []
    for topic, members in _by_topic():
        lines += [topic]
        for term in members:
            lines += textwrap.wrap(
                f"{term.term:<{longest}}  {term.meaning}",
                width,
                initial_indent="  ",
                subsequent_indent=" " * (longest + 4),
            )
        lines.append("")
    names = textwrap.wrap(", ".join(facts()), width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, "Metrics (events: hwprof events)", *names])


def markdown(brought: Brought) -> str:
    """The documentation's page."""
    lines = [
        "# Glossary",
        "",
        f"Made by `{COMMAND}`; change `hwprof/glossary/terms.toml` and `hwprof/hardware/metrics.toml` instead.",
        "`hwprof explain WORD` prints an entry, with the metric's formula on the machine at hand.",
    ]
    for topic, members in _by_topic():
        lines += ["", f"## {topic}"]
        for term in members:
            lines += ["", f"### {term.term}", "", f"{_sentence(term.meaning)}", ""]
            lines += [f"- {label}: {_code(text) if label == 'formula' else text}" for label, text in _fields(term)]
    lines += ["", "## Metrics", ""]
    lines += [
        "Formulas over hardware events differ by processor: `hwprof events METRIC`, or `hwprof explain METRIC`.",
        "",
        "| name | title | unit | group | meaning | formula |",
        "|---|---|---|---|---|---|",
    ]
    for metric in facts().values():
        ways = other_ways(metric, brought)
        formula = _code(metric.formula.replace('"', "")) if metric.formula is not None else "by processor"
        formula += "".join(f"; {way.by}: {_code(way.formula)}" for way in ways)
        cells = (f"`{metric.name}`", metric.title, metric.unit, metric.group, meaning(metric, ways), formula)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines).rstrip() + "\n"


def _by_topic() -> Iterator[tuple[str, list[Term]]]:
    for topic in dict.fromkeys(term.topic for term in terms()):
        yield topic, [term for term in terms() if term.topic == topic]


def _fields(term: Term) -> list[tuple[str, str]]:
    """What is known of a term, by label."""
    also = ", ".join(term.names)
    fields = [
        ("formula", term.formula),
        ("provenance", term.provenance),
        *(("note", line) for line in term.more),
        ("where", term.where),
        ("source", term.source),
        ("also", also),
        ("see", ", ".join(term.see)),
    ]
    return [(label, text) for label, text in fields if text]


def _metric_fields(metric: ExplainedMetric, processor: str) -> list[tuple[str, str]]:
    fields: list[tuple[str, str | None]] = []
    formula = metric.formula or (f"not available: {metric.missing}" if metric.missing is not None else None)
    if formula is not None:
        fields = [("counters" if metric.ways else "formula", formula), ("processor", processor)]
    fields += [("note", metric.caveat), ("source", metric.source)]
    for way in metric.ways:
        what = way.title if way.meaning == metric.meaning else f"{way.title}: {way.meaning}"
        fields += [(way.by, what), ("formula", way.formula), ("note", way.caveat)]
    return [(label, text) for label, text in fields if text]


def _title(metric: ExplainedMetric) -> str:
    """As the report heads its column, with the unit where the title does not say it."""
    title = f"{metric.title}{'°' if metric.modelled else ''}"
    return title if metric.unit in metric.title else f"{title}, {metric.unit}"


def _event_fields(event: ExplainedEvent, processor: str) -> list[tuple[str, str]]:
    fields = [
        ("unit", event.unit if event.unit != "1" else None),
        ("note", event.caveat),
        ("source", event.source),
        ("processor", f"not this one ({processor}), but {', '.join(event.others)}" if event.others else None),
        ("here", "hwprof events: what this processor counts" if event.others else None),
    ]
    return [(label, text) for label, text in fields if text]


def _head(name: str, meaning: str, width: int) -> list[str]:
    return textwrap.wrap(f"{name}: {meaning}", width, subsequent_indent="  ")


def _lines(fields: Iterable[tuple[str, str]], width: int) -> list[str]:
    lines: list[str] = []
    for label, text in fields:
        lines += textwrap.wrap(text, width, initial_indent=f"  {label:<{LABEL}}", subsequent_indent=" " * (LABEL + 2))
    return lines


def _sentence(meaning: str) -> str:
    return meaning[:1].upper() + meaning[1:] + "."


def _code(text: str) -> str:
    return f"`{text}`"
