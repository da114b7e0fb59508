"""The layers of the first screen: time, budget, bound, hottest kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwprof.report.document.kernels import Kernels
from hwprof.report.document.layers import Layer
from hwprof.report.document.roofline import Roofline
from hwprof.report.document.time_budget import Budget, TimeBudget
from hwprof.report.text import figures
from hwprof.report.text.grid import Column
from hwprof.report.text.kernel_cells import LEAST_SAMPLES
from hwprof.report.text.page import Page
from hwprof.report.text.time_budget import bar

BAR: Final = 10
"""Characters of a layer's budget."""

PATH: Final = 22
KERNEL: Final = 18
"""To how many characters they may be cut."""

OBSERVER: Final = "torch::profiler::"
"""How names of the profiler's own code begin, which no layer is about."""

CPI: Final = "cpi"

LEAST_COMPUTE: Final = 0.2
"""Of a layer's time."""


def columns(rows: Sequence[Layer], page: Page) -> list[Column]:
    """Those that say something."""
    glyphs = page.glyphs
    budgets = {one.path: one for one in found.layers} if (found := page.part(TimeBudget)) is not None else {}
    roofs = {one.path: one for one in roofline.rows} if (roofline := page.part(Roofline)) is not None else {}
    sampled = page.part(Kernels)
    hottest: dict[str | None, str] = {}
    for kernel in sampled.kernels if sampled is not None else ():
        if kernel.waits is None and kernel.samples >= LEAST_SAMPLES and not kernel.kernel.startswith(OBSERVER):
            hottest.setdefault(kernel.layer, kernel.kernel)
    cpi = {one.path: one.cpi for one in sampled.layers} if sampled is not None else {}
    counted = [layer.metrics.get(CPI) for layer in rows]
    cpis = [
        (one if one is not None else cpi.get(layer.path)) if _computes(budgets.get(layer.path)) else None
        for one, layer in zip(counted, rows, strict=True)
    ]
    bars = [bar(budgets[one.path], BAR) if one.path in budgets else glyphs.dash for one in rows]
    candidates = [
        Column("layer", [one.path for one in rows], right=False, least=PATH, among=page.paths),
        Column("type", [one.type or glyphs.dash for one in rows], 5, right=False),
        Column("ms", [figures.milliseconds(one.time.median_ns) if one.time else glyphs.dash for one in rows]),
        Column("share", [figures.percent(one.share, glyphs) for one in rows]),
        Column("budget", bars, 1, right=False),
        Column("CPI", [figures.decimal(one, 2, glyphs) for one in cpis], 4),
        Column("bound", [roofs[one.path].bound if one.path in roofs else glyphs.dash for one in rows], 2, right=False),
        Column("hottest kernel", [hottest.get(one.path, glyphs.dash) for one in rows], 3, right=False, least=KERNEL),
    ]
    empty = {glyphs.dash, ""}
    return [one for one in candidates if set(one.cells) - empty]


def _computes(budget: Budget | None) -> bool:
    """Of a layer that does hardly anything of its own cycles per instruction say nothing: they are the kernel's."""
    return budget is None or budget.share("compute") >= LEAST_COMPUTE
