"""The section on layers: the hottest ones, what the others took, and the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from hwprof.analysis.share_basis import is_uneven
from hwprof.report.document.hottest import ORDER, lowest_first, values
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.noise import Noise
from hwprof.report.text import choice, columns, figures, kernels, layer_rows, noise
from hwprof.report.text.grid import ALWAYS, Column
from hwprof.report.text.layer_rows import Row
from hwprof.report.text.page import PATH, Page

ALIKE: Final = 0.02
"""By how much the sum of the layers' times differs from the whole's at most, to need no word."""

ELSEWHERE: Final = ("macs", "calls")
"""Sort keys that have a column of their own."""

OWN_CODE: Final = "(own): what a module does itself, between the modules that it calls"

TYPES: Final = 4
"""Of layers that were not called, so many types are named."""


def show(page: Page) -> None:
    """The hottest layers, what the others took, and the whole."""
    if not page.layers:
        return
    glyphs = page.glyphs
    hottest, below = layer_rows.hottest(page), layer_rows.sums(page)
    rows = [*hottest, *below]
    layers = [row.layer for row in rows]
    shares = ["" if row.operator else figures.percent(row.share, glyphs) for row in rows]
    bars = [*figures.bars([row.share for row in hottest], glyphs), *("" for _ in below)]
    later = 0 if page.metrics is None else choice.AFTER_CHOSEN
    metrics, sort = columns.metric_columns(layers, page), page.document.hottest.sort

    def layer() -> Column:
        return Column("layer", [row.name for row in rows], right=False, least=PATH, among=page.paths)

    shown = page.table(
        [
            layer(),
            Column("type", [one.type or "" if one else "" for one in layers], later + 3, right=False, least=9),
            Column("calls", [row.calls for row in rows], ALWAYS if sort == "calls" else later + 13),
            Column("time ms", ["" if one is None else figures.time_with_spread(one.time, glyphs) for one in layers]),
            *columns.minimum([None if one is None else one.time for one in layers], page, later),
            Column("share", shares, later),
            Column("", bars, later + 8, right=False),
            Column(
                "MACs",
                ["" if one is None else figures.macs(one.macs, glyphs) for one in layers],
                ALWAYS if sort == "macs" else later + 1,
            ),
            *_sorted_by(sort, layers, metrics, page),
            *metrics,
            *kernels.layer_columns(layers, page, later),
            Column(
                "output",
                [one.output_shapes or "" if one else "" for one in layers],
                later + 15,
                right=False,
                least=12,
            ),
        ],
        _title(page),
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
            _own_code(hottest),
            _beside(page),
            _not_called(page),
            _without_key(page),
            *notes,
            *kernels.layer_notes(shown, page.hottest(), page),
        ]
    )


def _beside(page: Page) -> str:
    """Why modules with products have no rate."""
    part = page.part(Layers)
    if part is None or not part.beside:
        return ""
    named = figures.some(part.beside, TYPES)
    return f"{page.glyphs.dash} rates of {named}: its time has nothing of what it did beside threads that it had begun"


def _sorted_by(sort: str, layers: Sequence[Layer | None], metrics: Sequence[Column], page: Page) -> list[Column]:
    """What the rows are sorted by, where no other column has it: an event, bytes, parameters, a metric that was not
    asked for."""
    if sort in ("time", ORDER, *ELSEWHERE) or any(column.key == sort for column in metrics):
        return []
    return [sort_column(sort, [None if one is None else one.path for one in layers], page)]


def sort_column(sort: str, paths: Sequence[str | None], page: Page) -> Column:
    """What rows of these layers are in the order of; None: a row of no layer."""
    known = _values(sort, page)
    return Column(sort, ["" if path is None else figures.amount(known.get(path), page.glyphs) for path in paths])


def _values(sort: str, page: Page) -> dict[str, float]:
    part = page.part(Layers)
    return values(part, sort) if part is not None else {}


def sum_of_times(page: Page) -> str:
    """What shares are of, where that is not the whole's time."""
    sum_ns = rows_sum_ns(page)
    if sum_ns is None:
        return ""
    return f"share: {shares_of(page, sum_ns)}: medians do not add up to the whole's"


def are_of_means(page: Page) -> bool:
    """Whether shares are of mean times, as those of medians would say next to nothing."""
    sum_ns, whole = rows_sum_ns(page), page.whole.time if page.whole is not None else None
    return sum_ns is not None and whole is not None and is_uneven(sum_ns, whole.median_ns)


def shares_of(page: Page, sum_ns: float) -> str:
    """What shares are of, where the rows' medians add up to ``sum_ns`` and not to the whole's: of means, where medians
    say far too little of rows that take long in turn, or too much of those that overlap in time."""
    sum_ms, whole = figures.milliseconds(sum_ns), page.whole.time if page.whole is not None else None
    if whole is None or not is_uneven(sum_ns, whole.median_ns):
        return f"of all rows' sum, {sum_ms} ms"
    return f"of mean times (medians: {sum_ms} ms in all)"


def rows_sum_ns(page: Page) -> float | None:
    """The sum of the rows' times, which shares are of; None where it is the whole's time."""
    whole = page.whole.time if page.whole is not None else None
    if whole is None or not whole.median_ns:
        return None
    parts = [row.time for row in (*page.layers, page.unattributed) if row is not None and row.time is not None]
    sum_ns = sum(part.median_ns * part.repetitions for part in parts) / whole.repetitions
    return None if abs(sum_ns / whole.median_ns - 1) <= ALIKE else sum_ns


def _own_code(rows: Sequence[Row]) -> str:
    """What a row is that is no leaf."""
    if not any(row.layer is not None and row.layer.own for row in rows):
        return ""
    operators = "; below it its operators, pass trace" if any(row.operator for row in rows) else ""
    return f"{OWN_CODE}{operators}"


def _not_called(page: Page) -> str:
    """The layers that there is nothing to rank of, while others were called."""
    types = Counter(layer.type or "" for layer in page.layers if layer.time is None)
    if not types or types.total() == len(page.layers):
        return ""
    return f"not called: {figures.some([f'{number} {name}' for name, number in types.most_common()], TYPES)}"


def _without_key(page: Page) -> str:
    """Those that lack what the layers are sorted by stand last, and may not be shown."""
    hottest = page.document.hottest
    hidden = [one for one in page.layers if one.time and one.path not in hottest.layers]
    known = _values(hottest.sort, page)
    number = sum(layer.path not in known for layer in hidden)
    return f"not shown: {figures.plural(number, 'layer')} without {hottest.sort}" if number else ""


def _title(page: Page) -> str:
    """Which layers stand at the head, and how many of all."""
    sort, shown = page.document.hottest.sort, len(page.document.hottest.layers)
    of_all = f"({shown} of {shown + len(layer_rows.rest(page))})"
    if sort == ORDER:
        return f"Layers in order of execution {of_all}"
    return f"Layers by {sort}, lowest first {of_all}" if lowest_first(sort) else f"Hottest layers by {sort} {of_all}"


def _images(page: Page) -> str:
    """Of how many inputs times and MACs are, where that is not the model's for one."""
    workload = page.document.workload
    images = len(workload.sources) if workload is not None else 0
    return f"time, counts, MACs: per iteration of {images} {figures.noun_of_images(workload)}s" if images > 1 else ""


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
