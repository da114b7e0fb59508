"""What ``hwprof report --kernels`` prints: of each hot layer its kernels, and of each hot kernel its layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rich.text import Text

from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.report.document.hot_kernels import HotKernels, KernelLayers, LayerKernels
from hwprof.report.document.kernels import INSTRUMENTED, SampledFigures, SampledKernel, SampledLayer, Sampling
from hwprof.report.document.layers import Layer
from hwprof.report.document.roofline import CodeUnderRoofs, Roofline, UnderRoofs
from hwprof.report.text import figures, footnotes, kernel_cells, roofline
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page

SHOWN: Final = 6
"""Kernels of a layer, and layers of a kernel, that the text shows; JSON has all."""

OF_ONE: Final = 20
"""Kernels that it shows where there is only one layer to show."""

NAME: Final = 38
"""Kernels are what this is about: columns go before their names are cut below that."""

INDENT: Final = "  "

WAIT: Final = "wait"
EFFICIENCY: Final = "efficiency"
"""Columns of layers."""


def show(found: HotKernels, page: Page, *, full_names: bool = False) -> None:
    """Both tables, what is to be known of them, and on demand the kernels' full names."""
    page.console.print(Text(f"run {found.run}, pass {found.sampling.pass_name}"))
    shown = page.table(
        of_layers(found.layers, found.sampling, page),
        f"Kernels of the hottest layers: share of the {found.whole}, and of the layer",
    )
    shown += page.table(
        _of_kernels(found.kernels, found.sampling, page),
        f"Layers of the hottest kernels: share of the {found.whole}, and of the kernel",
    )
    notes = kernel_cells.footnotes(found.sampling, page, shown)
    page.notes([*notes, *layer_notes(found.layers, found.sampling, page, shown), _cut(found.sampling)])
    if full_names:
        below = [kernel for one in found.layers for kernel in one.kernels[:SHOWN]]
        kernel_cells.full_names([*(one.kernel for one in found.kernels), *below], page)


def of_layers(layers: Sequence[LayerKernels], sampling: Sampling, page: Page) -> list[Column]:
    """A row a layer, and below it one for each of its largest kernels."""
    names: list[str] = []
    rows: list[SampledFigures | None] = []
    cycles: list[SampledFigures | Layer | None] = []
    for one in layers:
        names.append(one.sampled.path)
        rows.append(one.sampled)
        cycles.append(one.layer if _counted(one, sampling) else one.sampled)
        shown, rest = _largest(one.kernels, SHOWN, page)
        names += [INDENT + kernel.kernel for kernel in shown]
        names += [INDENT + words for words in rest]
        rows += [*shown, *(None for _ in rest)]
        cycles += [*shown, *(None for _ in rest)]
    return _columns("layer, its kernels", names, rows, cycles, sampling, page)


def kernel_columns(kernels: Sequence[SampledKernel], sampling: Sampling, page: Page) -> list[Column]:
    """A row a kernel of one layer; nothing where all were met by chance."""
    shown, rest = _largest(kernels, OF_ONE, page)
    if not shown and not any(kernel.waits for kernel in kernels):
        return []
    names = [*(kernel.kernel for kernel in shown), *rest]
    rows: list[SampledKernel | None] = [*shown, *(None for _ in rest)]
    return _columns("kernel", names, rows, rows, sampling, page)


def _largest(kernels: Sequence[SampledKernel], most: int, page: Page) -> tuple[list[SampledKernel], list[str]]:
    """The ones to show, and lines on those that wait and on the others, if there are any."""
    working, waiting = kernel_cells.split(kernels)
    shown = [kernel for kernel in working[:most] if kernel.samples >= kernel_cells.LEAST_SAMPLES]
    rest = working[len(shown) :]
    samples = figures.plural(sum(kernel.samples for kernel in rest), "sample")
    lines = [*kernel_cells.waiting_line(waiting, page), *kernel_cells.observers_line(kernels, page)]
    return shown, [*lines, f"{len(rest)} more, {samples}"] if rest else lines


def _of_kernels(kernels: Sequence[KernelLayers], sampling: Sampling, page: Page) -> list[Column]:
    """A row a kernel, and below it one for each layer that has much of it."""
    glyphs = page.glyphs
    names: list[str] = []
    rows: list[SampledKernel | None] = []
    shares: list[str] = []
    for one in kernels:
        shown = one.layers[:SHOWN]
        names += [one.kernel.kernel, *(f"{INDENT}{row.layer}" for row in shown)]
        rows += [one.kernel, *shown]
        shares += [
            kernel_cells.share(one.kernel, glyphs),
            *(figures.percent(row.share_of_kernel, glyphs) for row in shown),
        ]
        rest = one.layers[len(shown) :]
        if rest:
            names.append(f"{INDENT}{_others(rest)}")
            rows.append(None)
            shares.append("")
    libraries = kernel_cells.libraries([row if row is not None and row.layer is None else None for row in rows])
    own = {"share": shares, "library": libraries}
    columns = _columns("kernel, its layers", names, rows, rows, sampling, page)
    return [replace(one, cells=own.get(one.header, one.cells)) for one in columns]


def _others(rest: Sequence[SampledKernel]) -> str:
    """The layers of a kernel that have no row, and their samples."""
    layers = sum(row.layer != UNATTRIBUTED for row in rest)
    words = [figures.plural(layers, "other layer")] if layers else []
    words += [UNATTRIBUTED] if layers < len(rest) else []
    return f"{' and '.join(words)}, {figures.plural(sum(row.samples for row in rest), 'sample')}"


def _columns(
    header: str,
    names: list[str],
    rows: Sequence[SampledFigures | None],
    cycles: Sequence[SampledFigures | Layer | None],
    sampling: Sampling,
    page: Page,
) -> list[Column]:
    glyphs = page.glyphs
    kernels = [row if isinstance(row, SampledKernel) else None for row in rows]
    layers = [row if isinstance(row, SampledLayer) else None for row in rows]
    mark = glyphs.instrumented if sampling.instructions_from else ""
    columns = [
        Column(header, names, right=False, least=NAME, most=kernel_cells.LONGEST),
        Column("library", kernel_cells.libraries(kernels), 6, right=False, least=kernel_cells.LIBRARY),
        Column("share", [kernel_cells.share(row, glyphs) for row in rows]),
        Column("samples", ["" if row is None else f"{row.samples:,}" for row in rows], 3),
        *kernel_cells.cpi_column(cycles, sampling, page),
        *kernel_cells.misses_column(rows, page),
        Column("instr." + mark, [figures.amount(row.instructions, glyphs) if row else "" for row in kernels], 5),
    ]
    under = [_under(row, page) for row in rows]
    columns += roofline.of_code(under, page, 2)
    if any(layers):
        wait = [figures.percent(row.wait_share, glyphs) if row else "" for row in layers]
        balance = [figures.percent(figures.at_most_all(row.efficiency), glyphs) if row else "" for row in layers]
        columns += [Column(WAIT, wait, 2), Column(EFFICIENCY, balance, 4)]
    return columns


def _under(row: SampledFigures | None, page: Page) -> CodeUnderRoofs | UnderRoofs | None:
    """A kernel's, or a layer's."""
    if isinstance(row, SampledKernel):
        return row.roofline
    known = page.part(Roofline)
    if known is None or not isinstance(row, SampledLayer):
        return None
    return next((one for one in known.rows if one.path == row.path), None)


def layer_notes(layers: Sequence[LayerKernels], sampling: Sampling, page: Page, shown: Sequence[Column]) -> list[str]:
    """What the figures of layers mean beside those of kernels."""
    return [_cpi_of_layers(layers, sampling, page, shown), _balance(sampling, shown), roofline.code_note(shown)]


def _cpi_of_layers(layers: Sequence[LayerKernels], sampling: Sampling, page: Page, shown: Sequence[Column]) -> str:
    """Where the rows of layers have the CPI that was counted of them, which is no sum of their kernels'."""
    metric = next((one for one in page.document.metrics if one.name == kernel_cells.CPI), None)
    header = next((column.header for column in shown if column.key == kernel_cells.CPI), None)
    if metric is None or header is None or not any(_counted(one, sampling) for one in layers):
        return ""
    return f"{header} of layers: counters read at their edges"


def _counted(one: LayerKernels, sampling: Sampling) -> bool:
    """Whether hardware counted the layer's cycles, whatever gave those of kernels."""
    if sampling.cpi_provenance == INSTRUMENTED or one.layer is None:
        return False
    return one.layer.metrics.get(kernel_cells.CPI) is not None


def _balance(sampling: Sampling, shown: Sequence[Column]) -> str:
    """What the columns of layers mean that tell how well threads share the work."""
    words = footnotes.of_columns(
        shown, {WAIT: "wait: CPU time in OpenMP", EFFICIENCY: "efficiency: busy / (threads x time)"}
    )
    return f"{words}; from {sampling.few_for_shares} samples" if words else ""


def _cut(sampling: Sampling) -> str:
    least, of_whole = (f"{100 * share:g}%" for share in (sampling.least_share, sampling.least_share_of_whole))
    return f"not listed: below {least} of a layer and {of_whole} of all; of one layer: hwprof report --layer PATH"
