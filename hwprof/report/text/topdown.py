"""Top-down: where the issue slots of the hottest layers went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwprof.hardware.metrics import facts
from hwprof.report.document.layers import Layer
from hwprof.report.document.metrics import MetricInfo
from hwprof.report.text import figures, metric_notes
from hwprof.report.text.grid import Column, fits_whole
from hwprof.report.text.page import PATH, Page

OPTIONAL: Final = "topdown_smt"
"""Only some processors tell it; the others' slots are whole without it."""

BAR: Final = 36
"""Characters of the bar of all slots."""

SECOND: Final = "  of which"
"""What stands at the head of a layer's second line."""


def show(page: Page) -> None:
    """The section; nothing where no such metric was measured. Where there is room, a bar of all slots, and the second
    level below the first."""
    found = {metric.name: metric for metric in page.document.metrics if metric.missing is None}
    levels = _levels()
    first = [found[name] for name in levels if name in found]
    layers = [layer for layer in page.hottest() if any(layer.metrics.get(metric.name) is not None for metric in first)]
    if not layers:
        return
    sums = [page.whole] if page.whole is not None else []
    rows = [*layers, *sums]
    names = [layer.path for layer in layers]
    names += [page.document.whole for _ in sums]
    parts = {metric.name: [found[part] for part in levels[metric.name] if part in found] for metric in first}

    def candidates_of(lines: int) -> list[Column]:
        found = [Column("layer", _lines(names, [SECOND for _ in rows], lines), right=False, least=PATH)]
        for metric in first:
            cells = [_figure(row, metric, page) for row in rows]
            below = [" / ".join(_figure(row, part, page) for part in parts[metric.name]) for row in rows]
            marked = metric.title + metric_notes.marks(metric, page.glyphs)
            found.append(Column(marked, _lines(cells, below, lines), key=metric.name))
        return found

    candidates, lines = candidates_of(2), 2
    if not any(parts.values()) or not fits_whole(candidates, page.console.width):
        candidates, lines = candidates_of(1), 1
    bars = [_bar(row, first, page) for row in rows] if page.wide else []
    if any(bars):
        candidates.append(Column("all slots", _lines(bars, ["" for _ in rows], lines), right=False))
    shown = page.table(
        candidates,
        "Top-down: where the issue slots of the hottest layers went",
        footer_rows=lines * len(sums),
    )
    visible = [metric for metric in first if any(column.key == metric.name for column in shown)]
    if lines > 1:
        visible += [part for metric in list(visible) for part in parts[metric.name]]
    page.notes(
        [
            "% of the issue slots of all threads, spinning included",
            "  ".join(_legend(first, page)) if any(bars) else "",
            f"{SECOND.strip()}: {page.glyphs.separator.join(_headings(parts))}" if lines > 1 else "",
            *metric_notes.reliability(visible, page.document, page.glyphs),
            *metric_notes.caveats(visible, page.glyphs, meanings=False),
        ]
    )


def _levels() -> dict[str, list[str]]:
    """The metrics of the first level, each with its parts on the second."""
    known = [metric for metric in facts().values() if metric.section == "topdown"]
    return {
        metric.name: [part.name for part in known if part.part_of == metric.name]
        for metric in known
        if metric.part_of is None
    }


def _lines(cells: Sequence[str], below: Sequence[str], lines: int) -> list[str]:
    """The cells of a column, with another one below each where rows have two lines."""
    return [text for pair in zip(cells, below, strict=True) for text in pair[:lines]]


def _figure(row: Layer, metric: MetricInfo, page: Page) -> str:
    return figures.decimal(row.metrics.get(metric.name), metric.digits, page.glyphs)


def _bar(row: Layer, first: Sequence[MetricInfo], page: Page) -> str:
    """The slots as a bar; nothing where one part is not known."""
    values = [row.metrics.get(metric.name) for metric in first]
    known = [value for value in values if value is not None]
    names = {metric.name for metric in first}
    if len(known) < len(values) or not names >= _levels().keys() - {OPTIONAL}:
        return ""
    return figures.stacked_bar([value / 100 for value in known], BAR, page.glyphs)


def _legend(first: Sequence[MetricInfo], page: Page) -> list[str]:
    return [f"{figures.slot_glyph(place, page.glyphs)} {_word(metric)}" for place, metric in enumerate(first)]


def _headings(parts: dict[str, list[MetricInfo]]) -> list[str]:
    """What the figures of the second line are, column by column."""
    return [" / ".join(_word(part) for part in members) for members in parts.values() if members]


def _word(metric: MetricInfo) -> str:
    return metric.title.removesuffix(" %")
