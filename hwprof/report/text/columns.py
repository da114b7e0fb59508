"""The columns that stages, layers and layer types share: metrics, and the footnotes that explain them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.hardware.metrics import facts
from hwprof.report.document.figures import Figures, ThreadParts, Times
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.metrics import MetricInfo
from hwprof.report.document.noise import Noise
from hwprof.report.document.threads import Threads
from hwprof.report.text import choice, figures, metric_notes
from hwprof.report.text.figures import Glyphs
from hwprof.report.text.footnotes import unavailable
from hwprof.report.text.grid import ALWAYS, Column
from hwprof.report.text.metric_notes import marks
from hwprof.report.text.noise import all_disturbed_kept
from hwprof.report.text.page import Page

CPI: Final = "cpi"
BY_THREAD: Final = "cpi by thread"
BY_THREAD_PRIORITY: Final = 6
ALIKE: Final = 1.25
"""Up to this ratio, the calling thread's and the workers' cycles per instruction count as alike."""

MINIMUM_PRIORITY: Final = 4
"""After MACs, CPI and GFLOP/s, by which a hot layer is judged."""

SPINNING: Final = "w"
"""Behind a figure of counters with much spinning in them."""

INSTRUCTIONS: Final = re.compile(r'"instructions(?::u)?"')
"""What hardware counts of a waiting loop like of work."""


def minimum(times: Sequence[Times | None], page: Page, later: int = 0) -> list[Column]:
    """The least of each time, beside its median: on a busy machine that is nearest to what the work takes, and always
    shown where the warning above everything sends the reader there. None where nothing was repeated; ``later`` is added
    to its priority."""
    if not any(time is not None and time.repetitions > 1 for time in times):
        return []
    cells = ["" if time is None else figures.milliseconds(time.min_ns) for time in times]
    noise = page.part(Noise)
    needed = noise is not None and all_disturbed_kept(noise)
    return [Column("min", cells, ALWAYS if needed else later + MINIMUM_PRIORITY)]


def metric_columns(rows: Sequence[Figures | None], page: Page, *, modelled: bool = True) -> list[Column]:
    """One column a metric that this run has, and dashes for the core ones that it has not; or those asked for."""
    columns: list[Column] = []
    for metric, priority in choice.choose(page.document, page.metrics):
        if modelled or metric.provenance != "modelled":
            cells = ["" if row is None else _cell(row, metric, page.glyphs) for row in rows]
            contaminated = [row is not None and is_contaminated(row, metric, page) for row in rows]
            paired = bool(columns) and choice.is_behind(metric.name, columns[-1].key)
            columns.append(
                Column(
                    header=_title(metric, paired=paired) + marks(metric, page.glyphs),
                    cells=_cells(cells, contaminated),
                    priority=priority,
                    key=metric.name,
                    marks=SPINNING if any(contaminated) else "",
                )
            )
            if metric.name == CPI:
                columns += _by_thread(rows, page)
    return columns


def _title(metric: MetricInfo, *, paired: bool) -> str:
    """Shorter where the column before says the rest."""
    known = facts().get(metric.name)
    return (known.short_title if paired and known is not None else None) or metric.title


def footnotes(shown: Sequence[Column], page: Page, *, whole: bool = True) -> list[str]:
    """What the shown metric columns need said: reasons of dashes, how far to trust them, and what they mean here.
    ``whole``: the table has a row of the whole."""
    document, glyphs = page.document, page.glyphs
    keys = {column.key for column in shown}
    chosen = [metric for metric, _ in choice.choose(document, page.metrics)]
    metrics = [metric for metric in chosen if metric.name in keys]
    present = [metric for metric in metrics if metric.missing is None]
    gone = metrics if page.metrics is not None else chosen  # a column of dashes alone is not shown
    unknown = [
        *_missing(gone, page),
        *_own_missing(present, shown, page),
        lacking(_all_rows(page), page, in_pass(counting_pass(page), page)),
        lacking_callers(_all_rows(page), page),
    ]
    notes = [*unknown, *metric_notes.reliability(present, document, glyphs, whole=whole)]
    if BY_THREAD in keys:
        notes.append("main|worker: CPI of the calling thread and of the others; they differ where workers spin")
    if any(metric.scope == "machine" for metric in present):
        notes.append(f"DRAM traffic: the whole machine's while a layer ran; {glyphs.dash} too short to resolve")
    threads = page.part(Threads)
    if threads is not None and any(SPINNING in column.marks for column in shown):
        notes.append(_spinning_note(threads))
    page.explained |= keys
    meant = metric_notes.meanings(metric_notes.generic_events(present, document), document)
    return notes + metric_notes.caveats(present, glyphs) + meant


def lacking(rows: Sequence[Layer], page: Page, where: str = "") -> str:
    """Why some of these rows have no counts; ``where``: in which pass, where the table does not say it."""
    found = {row.path: row.uncounted_ns for row in rows if row.uncounted_ns}
    return _lacking(found, f"code that is not counted ran there{where}", " ms of CPU time", page)


def lacking_callers(rows: Sequence[Layer], page: Page) -> str:
    """Which of these rows have no counts because their callers have none."""
    found = {row.path: row.uncounted_caller_ns for row in rows if row.uncounted_caller_ns}
    where = in_pass(page.document.figures_from, page)
    return _lacking(found, f"called by threads that were not counted yet{where}", " ms", page)


def counting_pass(page: Page) -> str | None:
    """The pass that uncounted work is of."""
    layers = page.part(Layers)
    return layers.uncounted_in if layers is not None else None


def in_pass(name: str | None, page: Page) -> str:
    """`` in pass measure``, where there are others."""
    return f" in pass {name}" if name is not None and len(page.document.passes) > 1 else ""


def _lacking(found: Mapping[str, float], why: str, unit: str, page: Page) -> str:
    if not found:
        return ""
    ordered = sorted(found, key=lambda path: (path == WHOLE, -found[path]))
    names = figures.some([page.document.whole if path == WHOLE else path for path in ordered], 2)
    extent = f"{'up to ' if len(found) > 1 else ''}{figures.milliseconds(max(found.values()))}{unit}"
    return f"{page.glyphs.dash} counts of {names}: {why} ({extent})"


def _all_rows(page: Page) -> list[Layer]:
    return [row for row in (*page.layers, page.unattributed, page.whole) if row is not None]


def not_shown(shown: Sequence[Column], page: Page) -> str:
    """Which of the metrics that were asked for had no room."""
    keys = {column.key for column in shown}
    chosen = choice.choose(page.document, page.metrics) if page.metrics is not None else []
    hidden = [metric.title for metric, _ in chosen if metric.name not in keys]
    return (
        f"not shown: {figures.some(hidden, metric_notes.NAMES)}. Try: --width 200, or fewer --metrics" if hidden else ""
    )


def _cells(cells: Sequence[str], contaminated: Sequence[bool]) -> list[str]:
    """Where waiting is in the counters of some rows, these are marked, and the others as wide."""
    if not any(contaminated):
        return list(cells)
    return [cell + (SPINNING if marked else " ") for cell, marked in zip(cells, contaminated, strict=True)]


def is_contaminated(row: Figures, metric: MetricInfo, page: Page) -> bool:
    """Whether a layer has a value of a metric that is made of hardware's count of instructions, many of which only
    waited."""
    threads = page.part(Threads)
    if threads is None or not isinstance(row, Layer) or row.metrics.get(metric.name) is None:
        return False
    if row.path not in threads.contaminated_layers:
        return False
    return metric.sources == ["measured"] and bool(INSTRUCTIONS.search(metric.formula))


def _spinning_note(threads: Threads) -> str:
    loop = f"{threads.contaminated_share:.0%} or more of the CPU time in OpenMP's loop, pass {threads.pass_name}"
    return f"{SPINNING} contaminated by spinning: {loop}"


def _cell(row: Figures, metric: MetricInfo, glyphs: Glyphs) -> str:
    return figures.decimal(row.metrics.get(metric.name), metric.digits, glyphs)


def _by_thread(rows: Sequence[Figures | None], page: Page) -> list[Column]:
    """Cycles per instruction of the calling thread and of the others, where they differ in any row."""
    parts = [row.by_thread.get(CPI) if row is not None else None for row in rows]
    if not any(_differs(part) for part in parts):
        return []
    cells = []
    for row, part in zip(rows, parts, strict=True):
        values = (part.main, part.workers) if part is not None else (None, None)
        cells.append("" if row is None else "|".join(figures.decimal(value, 2, page.glyphs) for value in values))
    return [Column("main|worker", cells, priority=BY_THREAD_PRIORITY, key=BY_THREAD)]


def _differs(part: ThreadParts | None) -> bool:
    if part is None or not part.main or not part.workers:
        return False
    return not 1 / ALIKE <= part.workers / part.main <= ALIKE


def _missing(metrics: Sequence[MetricInfo], page: Page) -> list[str]:
    """One footnote a reason; where hardware counters are missing altogether that is one."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for metric in metrics:
        if metric.missing is not None:
            reasons.setdefault((metric.missing.reason, metric.missing.remedy), []).append(metric.title)
    return [
        f"{page.glyphs.dash} {unavailable(titles, reason, remedy, page.document)}"
        for (reason, remedy), titles in reasons.items()
    ]


def _own_missing(metrics: Sequence[MetricInfo], shown: Sequence[Column], page: Page) -> list[str]:
    """Why rows of modules' own code hold dashes; one footnote a reason."""
    dash = page.glyphs.dash
    dashed = {column.key for column in shown if dash in (cell.strip() for cell in column.cells)}
    reasons: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.own_missing is not None and metric.name in dashed:
            reasons.setdefault(metric.own_missing.reason, []).append(metric.title + marks(metric, page.glyphs))
    return [f"{dash} {', '.join(titles)} of (own), {UNATTRIBUTED}: {reason}" for reason, titles in reasons.items()]
