"""The sections on instrumented passes: their layers, and their kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwprof.hardware.metrics import facts
from hwprof.report.document.instrumented import Instrumented, InstrumentedKernel, Pass, layers_of
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.layers import Layer
from hwprof.report.document.metrics import Event, MetricInfo
from hwprof.report.text import choice, columns, figures, kernel_cells, metric_notes
from hwprof.report.text.footnotes import MOST, of_columns, unavailable
from hwprof.report.text.grid import Column
from hwprof.report.text.page import PATH, Page

CPI: Final = "cpi"
TIME: Final = "time ms"
RATIO: Final = "instruction_ratio"
SIMULATED: Final = "simulated"
KERNEL: Final = 30
"""To how many characters a kernel's name may be cut."""

LONGEST: Final = 60
"""How many characters of it are shown at most."""

INSTRUCTIONS: Final = ".instructions"
FEW: Final = 6
"""Up to so many events are named below the table."""


def show(page: Page) -> None:
    """The sections: the layers of each such pass, then its kernels, where the samples' section has not named them."""
    sampled = page.part(Kernels)
    part = page.part(Instrumented)
    for found in part.passes if part is not None else []:
        _layers(found, page)
        if sampled is None or sampled.instructions_from != found.name:
            _functions(found, page)


def _layers(found: Pass, page: Page) -> None:
    """The layers with the most instructions."""
    glyphs = page.glyphs
    event, layers = _ranked_by(found), layers_of(found, page.document)
    if event is None or layers is None:
        return
    top = page.document.hottest.top
    counts = layers.counters.values(event)
    ranked = sorted((layer for layer in layers.rows if counts.get(layer.path)), key=lambda layer: -counts[layer.path])
    shown = ranked[:top]
    sums = [one for one in (layers.unattributed, layers.whole) if one is not None and one.path in counts]
    names = [layer.path for layer in shown]
    every: list[Layer] = [*shown, *sums]
    whole = counts.get(layers.whole.path) if layers.whole is not None else None
    names += [page.document.whole if layer is layers.whole else layer.path for layer in sums]
    hottest = {kernel.layer: kernel for kernel in reversed(found.kernels) if kernel.layer is not None}
    title = f"Layers by instructions, pass {found.name}"
    if found.instruction_set:
        title += f", restricted to {found.instruction_set}"
    visible = page.table(
        [
            Column("layer", names, right=False, least=PATH, among=page.paths),
            Column("instr." + glyphs.instrumented, [figures.amount(counts.get(row.path), glyphs) for row in every]),
            Column(
                "share",
                [figures.percent(counts.get(row.path, 0.0) / whole if whole else None, glyphs) for row in every],
            ),
            Column(TIME, [figures.time_with_spread(row.time, glyphs) for row in every], 3),
            *_by_hardware(found, every, page),
            *metric_columns(found, [row.metrics for row in every], page),
            Column(
                "most instr. in",
                [_kernel(hottest.get(row.path)) for row in every],
                1,
                right=False,
                least=KERNEL,
                most=LONGEST,
            ),
        ],
        f"{title} ({len(shown)} of {len(ranked)})",
        footer_rows=len(sums),
    )
    lacking = columns.lacking(layers.every, page)
    page.notes([*_provenance(found, visible, page), *legend(visible, page), lacking, *found.notes])


def _by_hardware(found: Pass, every: Sequence[Layer], page: Page) -> list[Column]:
    """What hardware counters say of the same layers, where there are such."""
    measured = {
        metric.name: metric
        for metric in page.document.metrics
        if metric.missing is None and (metric.name == RATIO or not choice.is_instrumented(metric))
    }
    if CPI not in measured or found.instruction_set:
        return []
    others = {layer.path: layer.metrics for layer in (*page.layers, *_sums(page)) if layer is not None}
    return [
        Column(
            title,
            [figures.decimal(others.get(row.path, {}).get(name), measured[name].digits, page.glyphs) for row in every],
            2,
        )
        for name, title in ((CPI, "CPI, hardware"), (RATIO, "instr., hw/~"))
        if name in measured
    ]


def _sums(page: Page) -> tuple[Layer | None, Layer | None]:
    return page.unattributed, page.whole


def _functions(found: Pass, page: Page) -> None:
    """The kernels of the whole."""
    rows = [kernel for kernel in found.kernels if kernel.layer is None][: page.document.hottest.top]
    if not rows:
        return
    title = f"Kernels by instructions, pass {found.name}: self, {_extent(found, page)}"
    kernels(found, rows, title, page)
    page.notes(
        [
            _no_cpi(found, page),
            "kernels by layer: kernel_counts.parquet, --format json",
        ]
    )


def kernels(found: Pass, rows: Sequence[InstrumentedKernel], title: str, page: Page) -> None:
    """A table of kernels, with a column of dashes where a reader looks for their CPI."""
    glyphs = page.glyphs
    shown = page.table(
        [
            Column("kernel", [kernel.kernel for kernel in rows], right=False, least=KERNEL, most=LONGEST),
            Column("library", kernel_cells.libraries(rows), 3, right=False, least=kernel_cells.LIBRARY),
            Column("instr." + glyphs.instrumented, [figures.amount(kernel.instructions, glyphs) for kernel in rows]),
            Column("share", [figures.percent(kernel.share, glyphs) for kernel in rows]),
            Column("CPI", [glyphs.dash for _ in rows], 2),
            *metric_columns(found, [kernel.metrics for kernel in rows], page),
        ],
        title,
    )
    page.notes(legend(shown, page))


def _no_cpi(found: Pass, page: Page) -> str:
    """Why the column of the kernels' CPI holds dashes."""
    reason, remedy = "no samples of this code", None
    if found.instruction_set:
        reason = f"samples are of other code than {found.instruction_set}"
    elif (sampled := page.part(Kernels)) is not None:
        reason = f"not comparable with the sampled pass {sampled.pass_name}"
    else:
        missing = kernel_cells.no_samples(page.document)
        reason, remedy = missing.reason, missing.remedy
    return f"{page.glyphs.dash} {unavailable(['CPI of kernels'], reason, remedy, page.document)}"


def metric_columns(found: Pass, rows: Sequence[Mapping[str, float | None]], page: Page, first: int = 4) -> list[Column]:
    """The pass's metrics that have something to say of these rows; CPI before the others, whose priorities begin with
    ``first``."""
    made = []
    for number, metric in enumerate(metric for metric in found.metrics if not _is_elsewhere(metric.name)):
        values = [row.get(metric.name) for row in rows]
        if any(values):
            made.append(_metric_column(metric, values, 2 if metric.name == CPI else first + number, page))
    return made


def legend(shown: Sequence[Column], page: Page) -> list[str]:
    """What the columns of ``metric_columns`` hold, as many as fit on a line; not what a table above has said."""
    meanings: dict[str, list[str]] = {}
    for column in shown:
        known = facts().get(column.key)
        if known is not None and known.legend is not None and column.key not in page.explained:
            meanings.setdefault(known.legend, []).append(column.header)
            page.explained.add(column.key)
    lines: list[str] = []
    for words, headers in meanings.items():
        one = f"{', '.join(headers)}: {words}"
        joined = f"{lines.pop()}; {one}" if lines and len(lines[-1]) + len(one) + 2 <= MOST else one
        lines.append(joined)
    return lines


def _is_elsewhere(metric: str) -> bool:
    """Whether tables of other sections show it, or a metric that tells the same."""
    known = facts().get(metric)
    return known is not None and (known.section != choice.LAYERS or bool(known.behind or known.inverse_of))


def _metric_column(metric: MetricInfo, values: Sequence[float | None], priority: int, page: Page) -> Column:
    cells = [figures.decimal(value, metric.digits, page.glyphs) for value in values]
    return Column(metric.title + metric_notes.marks(metric, page.glyphs), cells, priority, key=metric.name)


def _extent(found: Pass, page: Page) -> str:
    if found.status != "completed":
        return "complete layers"
    return "one iteration" if page.document.whole == "iteration" else f"one iteration's {page.document.whole}"


def _ranked_by(found: Pass) -> str | None:
    return next((event.name for event in found.events if event.name.endswith(INSTRUCTIONS)), None)


def _kernel(kernel: InstrumentedKernel | None) -> str:
    if kernel is None or kernel.share is None:
        return ""
    return f"{100 * kernel.share:.0f}% {kernel.kernel}"


def _provenance(found: Pass, shown: Sequence[Column], page: Page) -> list[str]:
    """Where the figures come from, and what they are not."""
    by_kind: dict[str, list[Event]] = {}
    for event in found.events:
        by_kind.setdefault(event.provenance, []).append(event)
    words = [f"{kind}: {_named(events, _left_out(kind, shown, page))}" for kind, events in by_kind.items()]
    restricted = ""
    if found.instruction_set:
        threads = figures.plural(found.threads or 1, "thread")
        restricted = f"{found.instruction_set}, {threads}: not comparable with the other tables"
    times = f"time: pass {found.times_from}, uninstrumented"
    notes = [f"{page.glyphs.instrumented} {'; '.join(words)}", restricted]
    return [*notes, found.not_comparable or of_columns(shown, {TIME: times})]


def _left_out(kind: str, shown: Sequence[Column], page: Page) -> list[str]:
    """The groups of simulated metrics that have no column here: somebody asked for them when the run was made."""
    if kind != SIMULATED:
        return []
    seen = {column.key for column in shown}
    metrics = [metric for metric in page.document.metrics if kind in metric.sources and metric.missing is None]
    return list(dict.fromkeys(metric.group for metric in metrics if metric.name not in seen))


def _named(events: Sequence[Event], groups: Sequence[str]) -> str:
    if groups:
        return f"{figures.plural(len(events), 'event')} (--metrics {','.join(groups)})"
    if len(events) > FEW:
        return f"{len(events)} events (--format json)"
    return figures.enumerate_words([event.name.rpartition(".")[2] for event in events])
