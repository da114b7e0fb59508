"""``hwprof peaks`` on the terminal: arithmetic, bandwidth by level, latency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hwprof.report.text import figures
from hwprof.report.text.figures import Glyphs, glyphs_of
from hwprof.report.text.grid import Column, fit, table
from hwprof.run.peaks import DRAM, NEW_PAGE, USUAL_PAGES, Peak, Peaks
from hwprof.unavailable import explain

NAMES: Final = {
    "fp32": "FP32",
    "bf16": "BF16",
    "int8": "INT8",
    "gemm-fp32": "GEMM FP32",
    "gemm-bf16": "GEMM BF16",
    "read": "reads",
    "triad": "triad",
    "triad-nt": "triad, non-temporal",
}


NOTES: Final = (
    "threads: each on a core of its own, as far as there are cores",
    "figures: the best of several repetitions; data sheet: x the measured clock",
    "triad: a = b + s c, 24 bytes an element as STREAM counts; NT: past the caches",
    "working set: of one thread; 1, 2: threads; GEMM: square products by torch",
)
"""Of a line each at 80 columns."""


def show(found: Peaks, console: Console) -> None:
    """Prints all of them; what could not be measured with its reason."""
    glyphs = glyphs_of(console.encoding)
    _head(found, console)
    if found.disturbed:
        warning = f"others took {found.others_share:.0%} of the processors meanwhile: peaks are too low"
        if found.measurements > 1:
            warning = f"{warning}, though the best of {found.measurements} measurements"
        console.print(Padding(Text(f"{warning}. Try: hwprof peaks on a quiet machine", "bold"), 0))
    levels = list(dict.fromkeys(one.level for one in found.peaks if one.level is not None))
    levels.sort(key=lambda level: (level == DRAM, level))
    _table(console, glyphs, "Arithmetic", _arithmetic(found, glyphs))
    _table(console, glyphs, "Bandwidth, GB/s", _bandwidth(found, levels, glyphs))
    _table(console, glyphs, _latency_title(found), _latency(found, levels, glyphs))
    if (page := found.find(NEW_PAGE)) is not None:
        console.print()
        fault = f"A page fault: {figures.three_digits(page.value)} ns, of {page.how}"
        console.print(Padding(Text(fault, overflow="fold"), 0))
    console.print()
    for note in NOTES:
        console.print(Padding(Text(note, overflow="fold"), (0, 0, 0, 2)))
    lacking: dict[str, list[str]] = {}
    for one in found.missing:
        lacking.setdefault(explain(one.reason, one.remedy), []).append(NAMES.get(one.what, one.what))
    for reason, names in lacking.items():
        text = f"{', '.join(names)} not available: {reason}"
        console.print(Padding(Text(text, overflow="fold"), (0, 0, 0, 2)))


def _head(found: Peaks, console: Console) -> None:
    """The processor and how it was measured, in lines that end between these where there is room."""
    compiler = f"C compiler {found.built_by}" if found.built_by else "nothing compiled"
    line = Text(found.processor, "bold")
    for fact in (f"measured {found.created} in {found.seconds:.1f} s", compiler):
        if line.cell_len + len(", ") + cell_len(fact) <= console.width:
            line = Text.assemble(line, ", ", fact)
        else:
            console.print(Padding(Text.assemble(line, ","), 0))
            line = Text(fact)
    console.print(Padding(line, 0))


def _arithmetic(found: Peaks, glyphs: Glyphs) -> list[Column]:
    kinds = [name for name in NAMES if any(one.what == name and one.level is None for one in found.peaks)]
    columns = [Column("", [_with_unit(kind, found) for kind in kinds], right=False)]
    for threads in found.threads:
        cells = [_value(found.find(kind, threads), glyphs) for kind in kinds]
        columns.append(Column(_threads(threads), cells))
    most = found.threads[-1]
    columns.append(Column("scale", [_scale(found.find(kind, most), glyphs) for kind in kinds], 1))
    sheet = {one.what: one for one in found.theoretical if one.threads == most}
    of_sheet = [figures.three_digits(sheet[kind].value) if kind in sheet else glyphs.dash for kind in kinds]
    columns.append(Column("data sheet", of_sheet, 1))
    how = [one.how if (one := found.find(kind)) is not None else "" for kind in kinds]
    columns.append(Column("measured by", how, 2, right=False, least=10))
    return columns


def _bandwidth(found: Peaks, levels: Sequence[str], glyphs: Glyphs) -> list[Column]:
    columns = [Column("", list(levels), right=False)]
    for threads in found.threads:
        read, triad, past_caches = (
            [_value(found.find(what, threads, level), glyphs) for level in levels]
            for what in ("read", "triad", "triad-nt")
        )
        columns += [
            Column(f"reads {threads}", read),
            Column(f"triad {threads}", triad),
            Column(f"triad NT {threads}", past_caches),
        ]
    sizes = [one.bytes if (one := found.find("triad", 1, level)) is not None else None for level in levels]
    columns.append(
        Column("working set", [f"{figures.amount(size, glyphs)}B" if size else glyphs.dash for size in sizes], 1)
    )
    return [column for column in columns if set(column.cells) != {glyphs.dash}]


def _latency(found: Peaks, levels: Sequence[str], glyphs: Glyphs) -> list[Column]:
    known = [(level, one) for level in levels if (one := found.find("latency", 1, level)) is not None]
    if (usual := found.find(USUAL_PAGES, 1, DRAM)) is not None:
        known.append((f"{DRAM}, usual pages", usual))
    clock = found.find("clock")
    columns = [
        Column("", [level for level, _ in known], right=False),
        Column("load ns", [figures.three_digits(one.value) for _, one in known]),
    ]
    if clock is not None:
        columns.append(Column("load cycles", [f"{one.value * clock.value:.0f}" for _, one in known]))
    columns.append(Column("working set", [f"{figures.amount(one.bytes, glyphs)}B" for _, one in known], 1))
    return columns


def _latency_title(found: Peaks) -> str:
    clock = found.find("clock")
    return "Latency of a load" + ("" if clock is None else f", at {clock.value:.2f} GHz")


def _table(console: Console, glyphs: Glyphs, title: str, columns: list[Column]) -> None:
    if not columns[0].cells:
        return
    console.print()
    console.print(Text(title, "bold"))
    console.print(table(fit(columns, console.width), glyphs))


def _threads(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _value(peak: Peak | None, glyphs: Glyphs) -> str:
    return glyphs.dash if peak is None else figures.three_digits(peak.value)


def _with_unit(kind: str, found: Peaks) -> str:
    peak = found.find(kind)
    return NAMES[kind] if peak is None else f"{NAMES[kind]} {peak.unit}"


def _scale(peak: Peak | None, glyphs: Glyphs) -> str:
    return glyphs.dash if peak is None or peak.cores is None else f"{glyphs.times}{peak.cores:.2f}"
