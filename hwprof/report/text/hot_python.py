"""What ``hwprof report --python`` prints: lines with the kernels that they led to, and the functions of each stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from hwprof.printable import one_line
from hwprof.report.document.hot_python import HotPython
from hwprof.report.document.python import Python, PythonLine
from hwprof.report.text import figures, python
from hwprof.report.text.grid import Column
from hwprof.report.text.hot_kernels import INDENT, NAME, SHOWN
from hwprof.report.text.kernel_cells import LEAST_SAMPLES, LIBRARY, LONGEST
from hwprof.report.text.page import Page
from hwprof.report.text.raw_files import where


def show(found: HotPython, page: Page) -> None:
    """What no more than chance tells of is left out."""
    page.console.print(Text(f"run {found.run}, pass {found.python.pass_}"))
    _lines(found, page)
    _functions(found.python, page)
    page.notes([*map(one_line, found.python.notes), *where(found.python.files)])


class _Row(NamedTuple):
    """A line, or one of its kernels."""

    name: str
    beside: str  # the line's function, the kernel's library
    share: float | None
    cpu_ns: float
    samples: int
    low: float | None = None  # of the share
    high: float | None = None


def _lines(found: HotPython, page: Page) -> None:
    rows = [row for line in python.sampled_often(found.python) for row in _rows(line)]
    if rows:
        page.table(
            [
                Column("line, its kernels", [row.name for row in rows], right=False, least=NAME, most=LONGEST),
                Column("function, library", [row.beside for row in rows], 2, right=False, least=LIBRARY),
                Column("share", [figures.share(row.share, row.low, row.high, page.glyphs) for row in rows]),
                Column("CPU ms", [figures.milliseconds(row.cpu_ns) for row in rows], 1),
                Column("samples", [f"{row.samples:,}" for row in rows], 3),
            ],
            f"Python lines and their kernels: share of the {found.whole}, and of the line",
        )
    page.notes(python.notes_on_lines(found.python))


def _rows(line: PythonLine) -> Iterator[_Row]:
    """The line, its largest kernels, and all others together."""
    name, function = python.place(line), line.function or ""
    yield _Row(name, function, line.share, line.cpu_ns, line.samples, line.share_low, line.share_high)
    shown = [kernel for kernel in line.kernels[:SHOWN] if kernel.samples >= LEAST_SAMPLES]
    for kernel in shown:
        yield _Row(INDENT + kernel.kernel, kernel.library, kernel.share_of_line, kernel.cpu_ns, kernel.samples)
    rest = line.samples - sum(kernel.samples for kernel in shown)
    if rest:
        rest_ns = line.cpu_ns - sum(kernel.cpu_ns for kernel in shown)
        yield _Row(f"{INDENT}others", "", rest_ns / line.cpu_ns if line.cpu_ns else None, rest_ns, rest)


def _functions(part: Python, page: Page) -> None:
    rows = python.looked_at_often(part, inclusive=True)
    if rows:
        columns = python.function_columns(rows, page, inclusive=True)
        page.table(columns, "Python functions of the pipeline by inclusive time")
        page.notes([*python.notes_on_functions(part, "inclusive", page.glyphs), *python.notes_on_looks(part, page)])
