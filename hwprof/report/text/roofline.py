"""The section on the roofline: the model against this machine's peaks, and what bounds each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwprof.report.document.roofline import CodeUnderRoofs, Roofline, UnderRoofs
from hwprof.report.text import figures, footnotes
from hwprof.report.text.grid import Column
from hwprof.report.text.page import PATH, Page
from hwprof.run.peaks import NOISY

BOUND: Final = "bound"
LEAST_RATE: Final = 0.001
"""GFLOP/s: with less a layer has nothing to do with arithmetic."""

CODE_NOTE: Final = "bound: of the code while it runs, by its own operations and bytes (hwprof explain roofline)"
KERNELS_NOTE: Final = "GFLOP/s, bound: of the code while it runs, in leaf layers alone (hwprof explain roofline)"
"""Of kernels in all layers."""


def show(page: Page) -> None:
    """The layers that the report is about."""
    part = page.part(Roofline)
    if part is None:
        return
    known = {one.path: one for one in part.rows}
    rows = [known[layer.path] for layer in page.hottest() if layer.path in known]
    of_rows([*([part.whole] if part.whole is not None else []), *rows], page, f"Roofline: {in_words(part, page)}")
    page.notes([*notes(part), "drawn: hwprof report --roofline"])


def of_rows(rows: Sequence[UnderRoofs], page: Page, title: str) -> None:
    """A row a layer; the inference's has no path."""
    glyphs = page.glyphs
    page.table(
        [
            Column(
                "layer", [one.path or page.document.whole for one in rows], right=False, least=PATH, among=page.paths
            ),
            Column("GFLOP/s", [rate(one, page) for one in rows]),
            Column("roof", [one.roof or glyphs.dash for one in rows], right=False),
            Column("of roof", [figures.percent(one.share_of_roof, glyphs) for one in rows]),
            Column("bound", [one.bound for one in rows], right=False),
            Column("confidence", [one.confidence for one in rows], 2, right=False),
            Column("evidence", [one.evidence for one in rows], 1, right=False, least=16),
        ],
        title,
    )


def of_code(rows: Sequence[CodeUnderRoofs | UnderRoofs | None], page: Page, priority: int) -> list[Column]:
    """Columns of kernels, primitives and their layers, the bound first; none where nothing is known of any."""
    if not any(rows):
        return []
    shares = ["" if one is None else figures.percent(one.share_of_roof, page.glyphs) for one in rows]
    return [
        Column("GFLOP/s", ["" if one is None else rate(one, page) for one in rows], priority + 1),
        Column("of roof", shares, priority + 2),
        Column(BOUND, ["" if one is None else one.bound for one in rows], priority, right=False),
    ]


def code_note(shown: Sequence[Column], note: str = CODE_NOTE) -> str:
    """What these columns mean."""
    return footnotes.of_columns(shown, {BOUND: note})


def of_inference(part: Roofline) -> tuple[float | None, float | None]:
    """GFLOP/s of the inference, counted where operations were counted, and which share that is of the GEMM peak."""
    gflops = part.analytic_gflops if part.whole is None or part.whole.gflops is None else part.whole.gflops
    if gflops is None or part.share_of_gemm is None or not part.analytic_gflops:
        return gflops, None
    return gflops, part.share_of_gemm * gflops / part.analytic_gflops


def in_words(part: Roofline, page: Page) -> str:
    """``3.2 images/s, 223 GFLOP/s, 61% of the GEMM peak``: the rate that the inference's row below has, counted where
    operations were counted."""
    words = []
    if part.images_per_s is not None:
        noun = figures.noun_of_images(page.document.workload)
        words.append(f"{figures.three_digits(part.images_per_s)} {noun}s/s")
    gflops, share = of_inference(part)
    if gflops is not None:
        words.append(f"{figures.three_digits(gflops)} GFLOP/s")
    if share is not None:
        words.append(f"{share:.0%} of this machine's GEMM peak")
    return ", ".join(words) or f"{page.document.whole} against this machine's peaks"


def notes(part: Roofline) -> list[str]:
    """The roofs."""
    levels = ", ".join(f"{level} {figures.three_digits(value)}" for level, value in part.level_gbytes.items())
    others = part.others_share or 0.0
    low = f"others took {others:.0%} of the processors while the roofs were measured: they are too low"
    return [
        *([low] if others > NOISY else []),
        f"roofs, {figures.plural(part.threads, 'thread')}: FP32 {figures.three_digits(part.fp32_gflops)} GFLOP/s; GB/s:"
        f" {levels} (hwprof peaks)",
        "of roof: of the nearest one; bytes modelled: inputs, outputs, weights once (hwprof explain roofline)",
    ]


def rate(one: UnderRoofs | CodeUnderRoofs, page: Page) -> str:
    """GFLOP/s."""
    if one.gflops is None:
        return page.glyphs.dash
    return figures.three_digits(one.gflops) if one.gflops >= LEAST_RATE else f"<{LEAST_RATE}"
