"""The section on sampled kernels: which code took the processor time, and in which layers most of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwprof.analysis.observers import observes
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.report.document.instrumented import Instrumented, InstrumentedKernel
from hwprof.report.document.kernels import INSTRUMENTED, Kernels, SampledKernel, Waiting
from hwprof.report.document.layers import Layer
from hwprof.report.text import figures, instrumented, kernel_cells, roofline
from hwprof.report.text.grid import Column
from hwprof.report.text.kernel_cells import LONGEST, NAME
from hwprof.report.text.page import PATH, Page

HOTTEST: Final = "hottest kernel"
NAMED: Final = 2
"""Layers that a note names."""

KERNEL_PRIORITY: Final = 3
"""Among a layer's figures: after CPI and GFLOP/s."""

BESIDE_LAYERS: Final = 28
"""To how many characters a kernel's name may be cut where the layer that has most of it stands beside."""

BEHIND: Final = 10
"""From which priority on columns of other passes come: after all that samples tell."""


def show(page: Page) -> None:
    """The section, where a pass took samples."""
    sampled = page.part(Kernels)
    if sampled is None:
        return
    whole = [kernel for kernel in sampled.kernels if kernel.layer is None]
    kernels, _ = kernel_cells.split(whole)
    shown = kernels[: page.document.hottest.top]
    glyphs = page.glyphs
    mostly = most_of(sampled)
    waiting = sampled.waiting[:1]  # all of it: one line below the work
    others = _others(kernels[len(shown) :], page) + _observers(whole, page)
    rows: list[SampledKernel | Waiting | None] = [*shown, *(None for _ in others), *waiting]
    blank = [""] * (len(others) + len(waiting))
    columns = [
        Column(
            "kernel",
            [*(one.kernel for one in shown), *(name for name, _ in others), *("waiting" for _ in waiting)],
            right=False,
            least=BESIDE_LAYERS,
            most=LONGEST,
        ),
        Column("library", [*kernel_cells.libraries(shown), *blank], 4, right=False, least=kernel_cells.LIBRARY),
        Column(
            "share",
            [
                *(kernel_cells.share(one, glyphs) for one in shown),
                *(share for _, share in others),
                *(kernel_cells.share(one, glyphs) for one in waiting),
            ],
        ),
        *kernel_cells.cpi_column(rows, sampled, page),
        *kernel_cells.misses_column([*shown, *(None for _ in blank)], page),
        *_instructions(shown, blank, sampled, page),
        Column("layers", [*(figures.calls(kernel.layers, glyphs) for kernel in shown), *blank], 5),
        Column(
            "mainly in",
            [*(_mostly(mostly.get(_key(one)), page) for one in shown), *blank],
            1,
            right=False,
            least=PATH,
            among=page.paths,
        ),
        *roofline.of_code([*(kernel.roofline for kernel in shown), *(None for _ in blank)], page, 2),
        *_instrumented_columns(shown, blank, sampled, page),
    ]
    title = f"Hot kernels, pass {sampled.pass_name} ({len(shown)} of {len(kernels)})"
    visible = page.table(columns, title, footer_rows=len(blank))
    notes = [*kernel_cells.footnotes(sampled, page, visible), *instrumented.legend(visible, page)]
    page.notes([*notes, roofline.code_note(visible, roofline.KERNELS_NOTE), _hint(sampled)])


def _others(rest: Sequence[SampledKernel], page: Page) -> list[tuple[str, str]]:
    """The kernels that have no row, and their share together."""
    known = [one.share for one in rest if one.share is not None]
    return [(figures.plural(len(rest), "other kernel"), figures.percent(sum(known), page.glyphs))] if known else []


def _observers(kernels: Sequence[SampledKernel], page: Page) -> list[tuple[str, str]]:
    """Those that are there because somebody looks, and their share together."""
    known = [one.share for one in kernels if one.share is not None and observes(one.kernel)]
    return [("profilers", figures.percent(sum(known), page.glyphs))] if known else []


def most_of(sampled: Kernels) -> dict[tuple[str, str], SampledKernel]:
    """Of each kernel the layer that has most of it."""
    found: dict[tuple[str, str], SampledKernel] = {}
    for kernel in sampled.kernels:
        if kernel.layer is None:
            continue
        known = found.get(_key(kernel))
        if known is None or (kernel.share_of_kernel or 0) > (known.share_of_kernel or 0):
            found[_key(kernel)] = kernel
    return found


def hottest_kernels(sampled: Kernels) -> dict[str, SampledKernel]:
    """Of each layer with enough samples the kernel that took most of its processor time, waiting left out."""
    known = {layer.path for layer in sampled.layers if layer.samples >= sampled.few_samples}
    found: dict[str, SampledKernel] = {}
    for kernel in sampled.kernels:
        working = kernel.waits is None and not observes(kernel.kernel) and kernel.samples >= kernel_cells.LEAST_SAMPLES
        if kernel.layer in known and working:
            found.setdefault(kernel.layer, kernel)
    return found


def layer_columns(layers: Sequence[Layer | None], page: Page, later: int) -> list[Column]:
    """For tables of layers: the kernel that takes most of a layer's processor time, waiting left out, where samples
    tell it of at least half of the layers. ``later`` is added to its priority."""
    sampled = page.part(Kernels)
    if sampled is None:
        return []
    kernels = hottest_kernels(sampled)
    paths = [layer.path for layer in layers if layer is not None and layer.type is not None]
    if 2 * sum(path in kernels for path in paths) < max(len(paths), 1):
        return []
    rows = [None if layer is None or layer is page.whole else layer.path for layer in layers]
    cells = ["" if path is None else _hottest(kernels.get(path), page) for path in rows]
    return [Column(HOTTEST, cells, later + KERNEL_PRIORITY, right=False, least=NAME, most=LONGEST)]


def layer_notes(shown: Sequence[Column], layers: Sequence[Layer], page: Page) -> list[str]:
    """What samples' columns of these layers need said where they are shown."""
    sampled = page.part(Kernels)
    if sampled is None:
        return []
    notes = _no_cpi(layers, sampled, page) if any(column.key == kernel_cells.CPI for column in shown) else []
    if any(column.header == HOTTEST for column in shown):
        notes.append(f"{HOTTEST}: its share of the layer's CPU time, from {sampled.few_samples} samples on")
    return notes


def _no_cpi(layers: Sequence[Layer], sampled: Kernels, page: Page) -> list[str]:
    """Why some of these layers have no CPI by samples, and which ones for a reason of their own."""
    if sampled.cpi_provenance != INSTRUMENTED:
        return []
    reasons = {layer.path: layer.cpi_missing for layer in sampled.layers}
    found: dict[str, list[str]] = {}
    for layer in layers:
        if reason := reasons.get(layer.path):
            found.setdefault(reason, []).append(layer.path)
    named = [
        f"{reason} ({figures.some(paths, NAMED)})" if reason in sampled.cpi_left_out else reason
        for reason, paths in found.items()
    ]
    return kernel_cells.dashes(named, sampled, page)


def _hottest(kernel: SampledKernel | None, page: Page) -> str:
    if kernel is None or kernel.share is None:
        return page.glyphs.dash
    return f"{100 * kernel.share:3.0f}% {kernel.kernel}"


def _key(kernel: SampledKernel | InstrumentedKernel) -> tuple[str, str]:
    return kernel.kernel, kernel.library


def _mostly(kernel: SampledKernel | None, page: Page) -> str:
    if kernel is None or kernel.layer is None or kernel.share_of_kernel is None:
        return page.glyphs.dash
    return f"{100 * kernel.share_of_kernel:3.0f}% {kernel.layer}"


def _instructions(shown: Sequence[SampledKernel], below: Sequence[str], sampled: Kernels, page: Page) -> list[Column]:
    """``below``: the cells of what is no kernel."""
    if not any(kernel.instructions for kernel in shown):
        return []
    mark = page.glyphs.instrumented if sampled.instructions_from else ""
    cells = [figures.amount(kernel.instructions, page.glyphs) for kernel in shown]
    return [Column(f"instr.{mark}", [*cells, *below], 6)]


def _instrumented_columns(
    shown: Sequence[SampledKernel], below: Sequence[str], sampled: Kernels, page: Page
) -> list[Column]:
    """What the instrumented pass counted in the same kernels."""
    part = page.part(Instrumented)
    passes = part.passes if part is not None else []
    found = next((one for one in passes if one.name == sampled.instructions_from), None)
    if found is None:
        return []
    counted: Mapping[tuple[str, str], InstrumentedKernel] = {
        _key(one): one for one in found.kernels if one.layer is None
    }
    rows = [counted[_key(kernel)].metrics if _key(kernel) in counted else {} for kernel in shown]
    columns = instrumented.metric_columns(found, rows, page, BEHIND)
    return [replace(column, cells=[*column.cells, *below]) for column in columns]


def _hint(sampled: Kernels) -> str:
    layer = next((layer.path for layer in sampled.layers if layer.path != UNATTRIBUTED), None)
    one = f"; of one layer: hwprof report --layer {shlex.quote(layer)}" if layer else ""
    return f"kernels by layer: hwprof report --kernels{one}"
