"""The section on layers: the hottest ones, what the others took, and the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from hwprof.report.document.hottest import ORDER, lowest_first
from hwprof.report.document.layers import Layer
from hwprof.report.document.noise import Noise
from hwprof.report.text import choice, columns, figures, kernels, noise
from hwprof.report.text.figures import plural
from hwprof.report.text.grid import Column
from hwprof.report.text.page import PATH, Page

ALIKE: Final = 0.02
"""By how much the sum of the layers' times differs from the whole's at most, to need no word."""

TYPES: Final = 4
"""Of layers that were not called, so many types are named."""


def show(page: Page) -> None:
    """The hottest layers, what the others took, and the whole."""
    if not page.layers:
        return
    document, glyphs = page.document, page.glyphs
    rows = page.hottest()
    hottest = set(document.hottest.layers)
    rest = [layer for layer in page.layers if layer.path not in hottest and layer.time is not None]
    sums = [layer for layer in (page.unattributed, page.whole) if layer is not None]
    names = [layer.path for layer in rows]
    below: list[Layer | None] = [*sums]
    below_names = [document.whole if layer is page.whole else layer.path for layer in sums]
    if rest:
        below, below_names = [None, *below], [f"{plural(len(rest), 'other layer')}", *below_names]
    every: list[Layer | None] = [*rows, *below]
    rest_share = sum(layer.share or 0 for layer in rest)
    shares = [rest_share if row is None else row.share for row in every]
    bars = [*figures.bars([row.share for row in rows], glyphs), *("" for _ in below)]
    later = 0 if page.metrics is None else choice.AFTER_CHOSEN
    metrics = columns.metric_columns(every, page)

    def layer() -> Column:
        return Column("layer", [*names, *below_names], right=False, least=PATH, among=page.paths)

    shown = page.table(
        [
            layer(),
            Column("type", [row.type or "" if row else "" for row in every], later + 3, right=False, least=9),
            Column("calls", ["" if row is None else figures.calls(row.calls, glyphs) for row in every], later + 13),
            Column("time ms", ["" if row is None else figures.time_with_spread(row.time, glyphs) for row in every]),
            *columns.minimum([None if row is None else row.time for row in every], glyphs, later),
            Column("share", [figures.percent(share, glyphs) for share in shares], later),
            Column("", bars, later + 8, right=False),
            Column("MACs", ["" if row is None else figures.macs(row.macs, glyphs) for row in every], later + 1),
            *metrics,
            *kernels.layer_columns(every, page, later),
            Column(
                "output",
                [row.output_shapes or "" if row else "" for row in every],
                later + 15,
                right=False,
                least=12,
            ),
        ],
        f"{_title(document.hottest.sort)} ({len(rows)} of {len(rows) + len(rest)})",
        footer_rows=len(below),
    )
    if page.metrics is not None:
        while left := [column for column in metrics if column not in shown]:
            further = page.table([layer(), *left], "Same layers: more metrics", footer_rows=len(below))
            if len(further) < 2:
                break
            shown += further
    notes = [*columns.footnotes(shown, page), columns.not_shown(shown, page)]
    page.notes(
        [
            _repetitions(page),
            _images(page),
            sum_of_times(page),
            _own_code(rows),
            _not_called(page),
            *notes,
            *kernels.layer_notes(shown, rows, page),
        ]
    )


def sum_of_times(page: Page) -> str:
    """What shares are of, where that is not the whole's time."""
    whole = page.whole.time if page.whole is not None else None
    if whole is None or not whole.median_ns:
        return ""
    parts = [row.time for row in (*page.layers, page.unattributed) if row is not None and row.time is not None]
    sum_ns = sum(part.median_ns * part.repetitions for part in parts) / whole.repetitions
    if abs(sum_ns / whole.median_ns - 1) <= ALIKE:
        return ""
    return f"share: of the rows' sum, {figures.milliseconds(sum_ns)} ms: medians do not add up to the whole's"


def _own_code(rows: Sequence[Layer]) -> str:
    """What a row is that is no leaf."""
    return "(own): what a module does itself, between the modules that it calls" if any(row.own for row in rows) else ""


def _not_called(page: Page) -> str:
    """The layers that there is nothing to rank of, while others were called."""
    types = Counter(layer.type or "" for layer in page.layers if layer.time is None)
    if not types or types.total() == len(page.layers):
        return ""
    return f"not called: {figures.some([f'{number} {name}' for name, number in types.most_common()], TYPES)}"


def _title(sort: str) -> str:
    """Which layers stand at the head."""
    if sort == ORDER:
        return "Layers in order of execution"
    return f"Layers by {sort}, lowest first" if lowest_first(sort) else f"Hottest layers by {sort}"


def _images(page: Page) -> str:
    """Of how many inputs times and MACs are, where that is not the model's for one."""
    workload = page.document.workload
    images = len(workload.sources) if workload is not None else 0
    return f"time, counts, MACs: per iteration of {images} images" if images > 1 else ""


def _repetitions(page: Page) -> str:
    """How many iterations times and counts are of: the noise's figures, which know what was left out."""
    document, found = page.document, page.document.part(Noise)
    record = next((one for one in document.passes if one.name == document.figures_from), None)
    if record is None or found is None or not found.timed:
        return ""
    spread = "time: of" if found.timed == 1 else f"time: median {page.glyphs.plus_minus} MAD of"
    if not record.timed:  # then times are of the counted ones
        return f"{spread} {noise.remaining(found.timed, found.timed_left_out, 'counted iteration')}"
    sets = len(record.event_sets)
    turns = f", {sets} event sets in turn" if sets > 1 else ""
    of_counts = "of" if found.counted == 1 else "median of"
    counted = noise.remaining(found.counted, found.counted_left_out, "counted", "counted")
    counts = f"; counts: {of_counts} {counted}{turns}" if found.counted else ""
    return f"{spread} {noise.remaining(found.timed, found.timed_left_out, 'timed iteration')}{counts}"
