"""What tables of sampled layers and kernels share: columns, names, and the footnotes that explain them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rich.padding import Padding
from rich.text import Text

from hwprof.analysis.no_cpi import FEW
from hwprof.analysis.observers import observes
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.report.document.document import Document
from hwprof.report.document.instrumented import InstrumentedKernel
from hwprof.report.document.kernels import SampledFigures, SampledKernel, SampledLayer, Sampling, Waiting
from hwprof.report.document.layers import Layer
from hwprof.report.document.primitives import SampledReorders
from hwprof.report.text import figures
from hwprof.report.text.figures import Glyphs
from hwprof.report.text.footnotes import unavailable
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.unavailable import Unavailable

CPI: Final = "cpi"
LLC_MPKI: Final = "llc_mpki"

NAME: Final = 30
"""To how many characters a kernel's name may be cut."""

LIBRARY: Final = 13
"""To how many characters a library's name may be cut."""

SUFFIX: Final = re.compile(r"\.so(\.\d+)*$")

LONGEST: Final = 60
"""How many characters of it are shown at most."""

LEAST_SAMPLES: Final = 3
"""Kernels with fewer samples in a layer are not named in the text: some such code is met by chance."""

WAITS: Final = "waits"
"""What stands in the place of the CPI of code that waits."""

CAUSES: Final = 4
"""Of waiting: so many are named."""


def share(row: SampledFigures | SampledReorders | Waiting | None, glyphs: Glyphs) -> str:
    """The share with half of its interval, in percent: ``35.2% ±0.8``."""
    if row is None or row.share is None:
        return ""
    return figures.share(row.share, row.share_low, row.share_high, glyphs)


def cpi(row: SampledFigures | Waiting | Layer | None, glyphs: Glyphs) -> str:
    """Cycles an instruction, with half of their interval where the samples make one; a layer's as it was counted, where
    something counted cycles."""
    if row is None:
        return ""
    if isinstance(row, Waiting):
        return WAITS
    value = row.metrics.get(CPI) if isinstance(row, Layer) else row.cpi
    text = figures.decimal(value, 2, glyphs)
    if value is None or isinstance(row, Layer) or row.cpi_low is None or row.cpi_high is None:
        return text
    return f"{text} {glyphs.plus_minus}{(row.cpi_high - row.cpi_low) / 2:.2f}"


def cpi_column(rows: Sequence[SampledFigures | Waiting | Layer | None], sampled: Sampling, page: Page) -> list[Column]:
    """Cycles an instruction; where nothing tells them a column of dashes, so that a reader sees it."""
    mark = "" if sampled.cpi_provenance == "measured" else page.glyphs.instrumented
    title = f"CPI{mark}" if sampled.cpi_provenance else "CPI"
    missing = [row.cpi_missing for row in rows if isinstance(row, SampledFigures) and row.cpi_missing]
    reasons = tuple(dict.fromkeys(missing))
    return [Column(title, [cpi(row, page.glyphs) for row in rows], 1, key=CPI, reasons=reasons)]


def misses_column(rows: Sequence[SampledFigures | None], page: Page) -> list[Column]:
    """Misses of the last-level cache, where they were counted."""
    if not any(row is not None and row.llc_mpki is not None for row in rows):
        return []
    cells = ["" if row is None else figures.decimal(row.llc_mpki, 2, page.glyphs) for row in rows]
    return [Column("LLC MPKI", cells, 2, key=LLC_MPKI)]


def footnotes(sampled: Sampling, page: Page, shown: Sequence[Column], of: Sequence[SampledLayer] = ()) -> list[str]:
    """How the figures came about, and how far to trust them. ``shown``: the columns of the tables above; ``of``: the
    layers that these are about, none: all that was sampled. What is known of all is not said of some layers."""
    frequency = f" at {sampled.frequency_hz:,} Hz" if sampled.frequency_hz else ""
    iterations = figures.plural(sampled.iterations, "iteration")
    samples = sum(layer.samples for layer in of) if of else sampled.samples
    interval = f"share: of CPU time, {page.glyphs.plus_minus} half the 95% interval; "
    return [
        f"{interval}{figures.plural(samples, 'sample')} ({sampled.event}{frequency}), {iterations}",
        *(_cpi_notes(sampled, page, shown) if any(column.key == CPI for column in shown) else ()),
        *_waits(sampled, of, page),
        _of_layers(sampled, of, page) if of else _unnamed(sampled, page),
        *_troubles(sampled, "whole pass: " if of else ""),
    ]


def _waits(sampled: Sampling, of: Sequence[SampledLayer], page: Page) -> list[str]:
    """What waiting is, and how much there is of it by cause; of a layer that of OpenMP is known, of several nothing."""
    if of:
        share = of[0].wait_share if len(of) == 1 else None
        return [f"waiting for threads or waking them (OpenMP): {figures.percent(share, page.glyphs)}"] if share else []
    causes = [row for row in sampled.waiting if row.cause is not None]
    if not causes:
        return []
    named = figures.some([f"{row.cause} {figures.percent(row.share, page.glyphs)}" for row in causes], CAUSES)
    return [f"waiting: for threads, waking or changing them: {named}"]


def libraries(kernels: Sequence[SampledKernel | InstrumentedKernel | None]) -> list[str]:
    """The libraries' names without suffix and version (``libpython3.11``), which say least and would be all that is
    left of a long one, unless they tell two of them apart."""
    names = dict.fromkeys(kernel.library for kernel in kernels if kernel is not None)
    shorter = {name: SUFFIX.sub("", name) for name in names}
    of_one = Counter(shorter.values())
    texts = {name: text if of_one[text] == 1 else name for name, text in shorter.items()}
    return ["" if kernel is None else texts[kernel.library] for kernel in kernels]


def split(kernels: Sequence[SampledKernel]) -> tuple[list[SampledKernel], list[SampledKernel]]:
    """Those that work, and those that wait; none that is there because somebody looks."""
    of_model = [one for one in kernels if not observes(one.kernel)]
    return [one for one in of_model if one.waits is None], [one for one in of_model if one.waits is not None]


def observers_line(kernels: Sequence[SampledKernel], page: Page) -> list[str]:
    """One line on those that are there because somebody looks."""
    shares = [kernel.share or 0.0 for kernel in kernels if observes(kernel.kernel)]
    return [f"profilers: {figures.percent(sum(shares), page.glyphs)}"] if shares else []


def waiting_line(kernels: Sequence[SampledKernel], page: Page) -> list[str]:
    """One line on kernels that wait, with their share of what they are kernels of; short, since it is a row's name."""
    if not kernels:
        return []
    shares: dict[str, float] = {}
    for kernel in kernels:
        shares[kernel.waits or ""] = shares.get(kernel.waits or "", 0.0) + (kernel.share or 0.0)
    most = max(shares, key=lambda cause: shares[cause])
    mostly = "mostly " if len(shares) > 1 else ""
    return [f"waiting ({mostly}{most}): {figures.percent(sum(shares.values()), page.glyphs)}"]


def _troubles(sampled: Sampling, whose: str) -> list[str]:
    """What went wrong in the pass."""
    troubles = [
        (sampled.lost, "lost record", "lost records"),
        (sampled.throttled, "time throttled by the kernel", "times throttled by the kernel"),
        (sampled.threads_missed, "thread ended before its first sample", "threads ended before their first sample"),
    ]
    words = [*sampled.notes, ", ".join(figures.plural(*trouble) for trouble in troubles if trouble[0])]
    return [f"{whose}{text}" for text in words if text]


def _cpi_notes(sampled: Sampling, page: Page, shown: Sequence[Column]) -> list[str]:
    dash = page.glyphs.dash
    if sampled.cpi_missing is not None:
        missing = sampled.cpi_missing
        return [f"{dash} {unavailable(['CPI'], missing.reason, missing.remedy, page.document)}"]
    few = f"{dash} under {sampled.few_samples} samples"
    if sampled.cpi_provenance == "measured":
        titles = ", ".join(dict.fromkeys(column.header for column in shown if column.key in (CPI, LLC_MPKI)))
        return [f"{titles}: counters read with each sample; {few}"]
    title, clock = f"CPI{page.glyphs.instrumented}", _clock(sampled, page.glyphs)
    reasons = tuple(dict.fromkeys(reason for column in shown if column.key == CPI for reason in column.reasons))
    return [
        f"{title}: CPU time x {clock} / instrumented instructions, in leaf layers alone",
        *dashes(reasons, sampled, page),
    ]


def dashes(reasons: Sequence[str], sampled: Sampling, page: Page) -> list[str]:
    """Why cells of that column are dashes; nothing where none is."""
    words = [f"under {sampled.few_samples} samples" if reason == FEW else reason for reason in reasons]
    return [f"{page.glyphs.dash} CPI{page.glyphs.instrumented}: {', '.join(words)}"] if words else []


def _clock(sampled: Sampling, glyphs: Glyphs) -> str:
    if sampled.core_ghz is None or sampled.core_ghz_error is None:
        return f"{sampled.reference_ghz:.4g} GHz (reference)" if sampled.reference_ghz else "reference GHz"
    return f"{sampled.core_ghz:.2f} {glyphs.plus_minus}{sampled.core_ghz_error:.2f} GHz (core)"


def _unnamed(sampled: Sampling, page: Page) -> str:
    """What has no layer, and what has no name."""
    between = next((row.share for row in sampled.coverage if row.where == UNATTRIBUTED), None)
    parts = []
    if between:
        parts.append(f"unattributed (Python, counter reads): {figures.percent(between, page.glyphs)}")
    parts += _nameless(sampled.named_share, page)
    if sampled.unknown:
        parts.append(f"in no file: {figures.plural(sampled.unknown, 'sample')}")
    return "; ".join([*parts, *_not_sampled(sampled)])


def _of_layers(sampled: Sampling, of: Sequence[SampledLayer], page: Page) -> str:
    """The same of a layer, as far as it was worked out."""
    return "; ".join([*_nameless(of[0].named_share if len(of) == 1 else None, page), *_not_sampled(sampled)])


def _nameless(named_share: float | None, page: Page) -> list[str]:
    if named_share is None or named_share >= 1:
        return []
    return [f"without a name: {figures.percent(1 - named_share, page.glyphs)}"]


def _not_sampled(sampled: Sampling) -> list[str]:
    return ["kernel code not sampled"] if sampled.kernel_sampled is False else []


def no_samples(document: Document) -> Unavailable:
    """Why a document has none."""
    return document.absent["kernels"]


def full_names(kernels: Iterable[SampledKernel], page: Page) -> None:
    """The names of these kernels with template arguments and parameters, where they say more, each once."""
    found = {(kernel.kernel, kernel.library): kernel for kernel in kernels if kernel.full_name is not None}
    if not found:
        return
    page.title("Full names")
    for kernel in found.values():
        others = (
            f" (and {figures.plural(kernel.code_ranges - 1, 'other')} of that name)" if kernel.code_ranges > 1 else ""
        )
        page.console.print(Padding(Text(f"{kernel.kernel}{others}", overflow="fold"), (0, 0, 0, 2)))
        page.console.print(Padding(Text(kernel.full_name or "", style="dim", overflow="fold"), (0, 0, 0, 4)))
