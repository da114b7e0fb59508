"""The section on sampled kernels: which code took the processor time, and in which layers most of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwprof.analysis.attribution import UNATTRIBUTED
from hwprof.report import figures, followed_view, sampled_columns
from hwprof.report.grid import Column
from hwprof.report.page import PATH, Page
from hwprof.report.sampled_columns import NAME
from hwprof.report.sampled_schema import Sampled, SampledKernel
from hwprof.report.schema import Kernel, Layer

WAIT: Final = "wait"
HOTTEST: Final = "hottest kernel"
KERNEL_PRIORITY: Final = 3
WAIT_PRIORITY: Final = 4
"""Among a layer's figures: after CPI and GFLOP/s."""

BEHIND: Final = 10
"""From which priority on columns of other passes come: after all that samples tell."""


def show(page: Page) -> None:
    """The section, where a pass took samples."""
    sampled = page.document.sampled
    if sampled is None:
        return
    kernels = [kernel for kernel in sampled.kernels if kernel.layer is None]
    shown = kernels[: page.document.hottest.top]
    glyphs = page.glyphs
    mostly = most_of(sampled)
    columns = [
        Column("kernel", [sampled_columns.name(kernel, glyphs) for kernel in shown], right=False, least=NAME),
        Column("library", [kernel.library for kernel in shown], 4, right=False, least=12),
        Column("share", [sampled_columns.share(kernel, glyphs) for kernel in shown]),
        *sampled_columns.cpi_column(shown, sampled, page),
        *sampled_columns.misses_column(shown, page),
        *_instructions(shown, sampled, page),
        Column("layers", [str(kernel.layers or "") for kernel in shown], 5),
        Column(
            "most of it in", [_mostly(mostly.get(_key(kernel)), page) for kernel in shown], 3, right=False, least=PATH
        ),
        *_followed_columns(shown, sampled, page),
    ]
    page.table(columns, f"Hot kernels, sampled ({len(shown)} of {len(kernels)})")
    page.notes([*sampled_columns.footnotes(sampled, page), _hint(sampled)])


def most_of(sampled: Sampled) -> dict[tuple[str, str], SampledKernel]:
    """Of each kernel the layer that has most of it."""
    found: dict[tuple[str, str], SampledKernel] = {}
    for kernel in sampled.kernels:
        if kernel.layer is None:
            continue
        known = found.get(_key(kernel))
        if known is None or (kernel.share_of_kernel or 0) > (known.share_of_kernel or 0):
            found[_key(kernel)] = kernel
    return found


def hottest_kernels(sampled: Sampled) -> dict[str, SampledKernel]:
    """Of each layer with enough samples the kernel that took most of its processor time, waiting left out."""
    known = {layer.path for layer in sampled.layers if layer.samples >= sampled.few_samples}
    found: dict[str, SampledKernel] = {}
    for kernel in sampled.kernels:
        if kernel.layer in known and kernel.domain != sampled_columns.OPENMP:
            found.setdefault(kernel.layer, kernel)
    return found


def layer_columns(layers: Sequence[Layer | None], page: Page, later: int) -> list[Column]:
    """For tables of layers: how much of a layer's processor time is waiting, and the kernel that takes most of the
    rest; each where samples tell it of at least half of the layers. ``later`` is added to their priorities."""
    sampled = page.document.sampled
    if sampled is None:
        return []
    waits = {layer.path: layer.wait_share for layer in sampled.layers if layer.wait_share is not None}
    kernels = hottest_kernels(sampled)
    rows = [None if layer is None or layer is page.document.inference else layer.path for layer in layers]
    wait = ["" if path is None else figures.percent(waits.get(path), page.glyphs) for path in rows]
    hottest = ["" if path is None else _hottest(kernels.get(path), page) for path in rows]
    columns = (
        (waits, Column(WAIT, wait, later + WAIT_PRIORITY)),
        (kernels, Column(HOTTEST, hottest, later + KERNEL_PRIORITY, right=False, least=NAME)),
    )
    paths = [layer.path for layer in layers if layer is not None and layer.type is not None]
    return [column for known, column in columns if 2 * sum(path in known for path in paths) >= len(paths) > 0]


def layer_notes(shown: Sequence[Column], page: Page) -> list[str]:
    """What the shown ones of ``layer_columns`` need said."""
    headers = {column.header for column in shown}
    sampled = page.document.sampled
    if sampled is None:
        return []
    told = {
        WAIT: f"wait: of its processor time, in the OpenMP runtime ({sampled.few_for_balance} samples and more)",
        HOTTEST: f"hottest kernel: its share of the layer's processor time ({sampled.few_samples} samples and more)",
    }
    return [words for name, words in told.items() if name in headers]


def _hottest(kernel: SampledKernel | None, page: Page) -> str:
    if kernel is None or kernel.share is None:
        return page.glyphs.dash
    return f"{100 * kernel.share:3.0f}% {sampled_columns.name(kernel, page.glyphs)}"


def _key(kernel: SampledKernel | Kernel) -> tuple[str, str]:
    return kernel.kernel, kernel.library


def _mostly(kernel: SampledKernel | None, page: Page) -> str:
    if kernel is None or kernel.layer is None or kernel.share_of_kernel is None:
        return ""
    return f"{100 * kernel.share_of_kernel:3.0f}% {kernel.layer}"


def _instructions(shown: Sequence[SampledKernel], sampled: Sampled, page: Page) -> list[Column]:
    if not any(kernel.instructions for kernel in shown):
        return []
    mark = page.glyphs.followed if sampled.instructions_from else ""
    return [Column(f"instr.{mark}", [figures.amount(kernel.instructions, page.glyphs) for kernel in shown], 6)]


def _followed_columns(shown: Sequence[SampledKernel], sampled: Sampled, page: Page) -> list[Column]:
    """What following the code tells of the same kernels."""
    found = next((one for one in page.document.followed if one.name == sampled.instructions_from), None)
    if found is None:
        return []
    told: Mapping[tuple[str, str], Kernel] = {_key(one): one for one in found.kernels if one.layer is None}
    rows = [told[_key(kernel)].metrics if _key(kernel) in told else {} for kernel in shown]
    return followed_view.metric_columns(found, rows, page, BEHIND)


def _hint(sampled: Sampled) -> str:
    layer = next((layer.path for layer in sampled.layers if layer.path != UNATTRIBUTED), None)
    one = f"; all of one layer: hwprof report --layer {layer}" if layer else ""
    return f"every hot layer's kernels: hwprof report --kernels{one}"
