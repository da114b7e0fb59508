"""The section on FLOPs: what was counted against what the layers' shapes ask for."""

from __future__ import annotations

from typing import Final

from hwprof.report.document.flops import AGREES, COUNTED, FlopCheck
from hwprof.report.document.layers import Layer
from hwprof.report.text import figures, metric_notes
from hwprof.report.text.figures import plural
from hwprof.report.text.grid import Column, fits_whole
from hwprof.report.text.page import PATH, Page

NO_MACS: Final = "no_macs"

UNEXPLAINED: Final = "no known reason"
"""How such a reason begins."""

NAMES: Final = 2
"""Layers that a footnote names."""


def show(page: Page) -> None:
    """The layers whose figures differ, most first, and the sum; nothing without counted FLOPs."""
    checked = [(layer, layer.flops) for layer in page.layers if layer.flops is not None]
    if not checked:
        return
    differing = [(layer, flops) for layer, flops in checked if flops.verdict not in (AGREES, NO_MACS)]
    differing.sort(key=lambda pair: -abs(pair[1].counted - pair[1].analytic))
    top = page.document.hottest.top
    title = "FLOPs: counted against analytic (2 x MACs)"
    reasons = _table(page, differing[:top], title) if differing else []
    if not differing:
        page.title(title)
    sums = _sums(page, checked)
    marks = _marks([flops for _, flops in differing[:top]])
    page.notes([*reasons, *sums, *marks, *_more(len(differing), top), *_reliability(page)])


def _table(page: Page, rows: list[tuple[Layer, FlopCheck]], title: str) -> list[str]:
    """Prints it; where the reasons have no room beside the figures, or are all the same, they are returned to stand
    below them."""
    glyphs = page.glyphs
    names = [layer.path for layer, _ in rows]
    why = Column("why", [flops.reason or "" for _, flops in rows], 2, right=False)
    figures_of = [
        Column("layer", names, right=False, least=PATH, among=page.paths),
        Column("counted", [figures.amount(flops.counted, glyphs) for _, flops in rows]),
        Column("analytic", [figures.amount(flops.analytic, glyphs) for _, flops in rows]),
        Column("ratio", [figures.decimal(flops.ratio, 2, glyphs) for _, flops in rows]),
        Column("", ["" if flops.expected else "!" for _, flops in rows], 1),
    ]
    reasons: dict[str, list[str]] = {}
    for name, reason in zip(names, why.cells, strict=True):
        if reason:
            reasons.setdefault(reason, []).append(name)
    different = len(reasons) > 1 or len(rows) == 1
    beside = different and fits_whole([*figures_of, why], page.console.width)
    kind = Column("type", [layer.type or "" for layer, _ in rows], 3, right=False, least=9)
    page.table([figures_of[0], kind, *figures_of[1:], *([why] if beside else [])], title)
    if beside:
        return []
    return [
        f"{'all' if len(named) == len(names) else figures.some(named, NAMES)}: {reason}"
        for reason, named in reasons.items()
    ]


def _sums(page: Page, checks: list[tuple[Layer, FlopCheck]]) -> list[str]:
    """On all layers: those that could be compared, those that have no products, and those whose nobody knows."""
    compared = [flops for _, flops in checks if flops.ratio is not None]
    without = [(layer, flops) for layer, flops in checks if flops.verdict == NO_MACS]
    lines = []
    total = page.whole.flops if page.whole is not None else None
    if total is not None and total.ratio is not None:
        agreeing = sum(flops.verdict == AGREES for flops in compared)
        lines.append(
            f"all layers with MACs: {figures.amount(total.counted, page.glyphs)} counted,"
            f" {figures.amount(total.analytic, page.glyphs)} analytic, ratio {total.ratio:.3f};"
            f" {agreeing} of {len(compared)} agree"
        )
    for words, known in (("without MACs", True), ("MACs not known", False)):
        flops_of = [flops for layer, flops in without if (layer.macs is not None) == known]
        if flops_of:
            counted = figures.amount(sum(flops.counted for flops in flops_of), page.glyphs)
            lines.append(f"{words}: {plural(len(flops_of), 'layer')}, {counted} counted")
    return lines


def _marks(shown: list[FlopCheck]) -> list[str]:
    """What the mark means, unless every reason that stands beside one says so itself."""
    marked = [flops.reason or "" for flops in shown if not flops.expected]
    says_so = all(reason.startswith(UNEXPLAINED) for reason in marked)
    return [] if says_so else ["! no reason that lies in the layer itself"]


def _more(number: int, top: int | None) -> list[str]:
    hidden = number - top if top is not None else 0
    return [f"{plural(hidden, 'further layer')} differ: --top {number}, or layers.csv"] if hidden > 0 else []


def _reliability(page: Page) -> list[str]:
    counted = [metric for metric in page.document.metrics if metric.name == COUNTED]
    return [*metric_notes.reliability(counted, page.document, page.glyphs), *metric_notes.caveats(counted, page.glyphs)]
