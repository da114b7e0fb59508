"""The layers of the first screen: time, budget, bound, hottest kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwprof.analysis.observers import observes
from hwprof.report.document.hottest import ORDER
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.layers import Layer
from hwprof.report.document.roofline import Roofline
from hwprof.report.document.time_budget import Budget, TimeBudget
from hwprof.report.text import alike_layers, figures
from hwprof.report.text.alike_layers import Alike
from hwprof.report.text.choice import is_instrumented
from hwprof.report.text.grid import Column
from hwprof.report.text.kernel_cells import LEAST_SAMPLES
from hwprof.report.text.layers import are_of_means, sort_column
from hwprof.report.text.page import Page
from hwprof.report.text.time_budget import LETTERS, bar

BAR: Final = 10
"""Characters of a layer's budget."""

PATH: Final = 22
KERNEL: Final = 18
"""To how many characters they may be cut."""

CPI: Final = "cpi"

LEAST_COMPUTE: Final = 0.2
"""Of a layer's time that others left to it."""


def columns(rows: Sequence[Alike], page: Page) -> list[Column]:
    """Those that say something, of layers that are alike together."""
    glyphs = page.glyphs
    roofs = {one.path: one for one in roofline.rows} if (roofline := page.part(Roofline)) is not None else {}
    sampled = page.part(Kernels)
    hottest: dict[str | None, str] = {}
    for kernel in sampled.kernels if sampled is not None else ():
        if kernel.waits is None and kernel.samples >= LEAST_SAMPLES and not observes(kernel.kernel):
            hottest.setdefault(kernel.layer, kernel.kernel)
    cpi = {one.path: one.cpi for one in sampled.layers} if sampled is not None else {}

    def cpi_of(layer: Layer) -> float | None:
        counted = layer.metrics.get(CPI)
        return counted if counted is not None else cpi.get(layer.path)

    spent = _spent(rows, page)
    sorted_by = page.document.hottest.sort == CPI
    cpis = [
        alike_layers.mean(map(cpi_of, row.layers)) if sorted_by or _computes(budget) else None
        for row, budget in zip(rows, spent, strict=True)
    ]
    instrumented = any(one.name == CPI and is_instrumented(one) for one in page.document.metrics)
    title = f"CPI{glyphs.instrumented}" if instrumented else "CPI"
    bounds = [alike_layers.usual(roofs[one.path].bound for one in row.layers if one.path in roofs) for row in rows]
    kernels = [alike_layers.usual(hottest.get(one.path) for one in row.layers) for row in rows]
    of_means = are_of_means(page)  # as the shares beside them
    taken = [row.time_ns(mean=of_means) for row in rows]
    times = [figures.milliseconds(one) if one is not None else glyphs.dash for one in taken]
    candidates = [
        Column("layer", [row.path for row in rows], right=False, least=PATH, among=page.paths),
        Column("alike", [str(len(row.layers)) if len(row.layers) > 1 else "" for row in rows]),
        Column("type", [row.layers[0].type or glyphs.dash for row in rows], 5, right=False),
        Column("mean ms" if of_means else "ms", times),
        Column("share", [figures.percent(row.share, glyphs) for row in rows]),
        *_sorted_by(rows, page),
        Column("budget", [bar(one, BAR) if one is not None else glyphs.dash for one in spent], 1, right=False),
        Column(title, [figures.decimal(one, 2, glyphs) for one in cpis], 0 if sorted_by else 4),
        Column("bound", [one or glyphs.dash for one in bounds], 2, right=False),
        Column("hottest kernel", [one or glyphs.dash for one in kernels], 3, right=False, least=KERNEL),
    ]
    empty = {glyphs.dash, ""}
    return [one for one in candidates if set(one.cells) - empty]


def _sorted_by(rows: Sequence[Alike], page: Page) -> list[Column]:
    """What the rows are in the order of, where no other column has it."""
    sort = page.document.hottest.sort
    if sort in (alike_layers.TIME, CPI, ORDER):
        return []
    return [sort_column(sort, [row.path for row in rows], page)]


def letters(rows: Sequence[Alike], page: Page) -> set[str]:
    """The parts of which a row's bar has a letter."""
    bars = "".join(bar(one, BAR) for one in _spent(rows, page) if one is not None)
    return {name for name, letter in LETTERS.items() if letter in bars}


def _spent(rows: Sequence[Alike], page: Page) -> list[Budget | None]:
    """The budget of each row, where samples tell of it."""
    found = page.part(TimeBudget)
    if found is None:
        return [None for _ in rows]
    single, together = ({one.path: one for one in budgets} for budgets in (found.layers, found.alike))
    return [(together if len(row.layers) > 1 else single).get(row.path) for row in rows]


def _computes(budget: Budget | None) -> bool:
    """Of a layer that does hardly anything of its own cycles per instruction say nothing: they are the kernel's."""
    return budget is None or budget.share("compute") >= LEAST_COMPUTE * (1 - budget.share("preempted"))
