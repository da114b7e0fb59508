"""What ``hwprof report --python`` prints: lines with the kernels that they led to, and the functions of each stage."""

from __future__ import annotations

from rich.text import Text

from hwprof.report.document.hot_python import HotPython
from hwprof.report.document.python import Python
from hwprof.report.text import figures, python
from hwprof.report.text.grid import Column
from hwprof.report.text.kernel_cells import LONGEST
from hwprof.report.text.page import Page

SHOWN = 6
"""Kernels of a line that the text shows; JSON has all."""

INDENT = "  "


def show(found: HotPython, page: Page) -> None:
    """What no more than chance tells of is left out."""
    page.console.print(Text(f"run {found.run}, pass {found.python.pass_}"))
    _lines(found, page)
    _functions(found.python, page)


def _lines(found: HotPython, page: Page) -> None:
    part, glyphs = found.python, page.glyphs
    names: list[str] = []
    functions: list[str] = []
    shares: list[str] = []
    times_ns: list[float] = []
    samples: list[int] = []
    for line in python.sampled_often(part):
        names.append(python.place(line))
        functions.append(line.function or "")
        shares.append(figures.percent(line.share, glyphs))
        below = line.kernels[:SHOWN]
        names += [INDENT + kernel.kernel for kernel in below]
        functions += [kernel.library for kernel in below]
        shares += [figures.percent(kernel.share_of_line, glyphs) for kernel in below]
        times_ns += [line.cpu_ns, *(kernel.cpu_ns for kernel in below)]
        samples += [line.samples, *(kernel.samples for kernel in below)]
    if names:
        page.table(
            [
                Column("line, its kernels", names, right=False, least=38, most=LONGEST),
                Column("function, library", functions, 2, right=False, least=13),
                Column("share", shares),
                Column("CPU ms", [figures.milliseconds(time_ns) for time_ns in times_ns], 1),
                Column("samples", [f"{number:,}" for number in samples], 3),
            ],
            f"Python lines and their kernels: share of the {found.whole}, and of the line",
        )
    page.notes(python.notes_on_lines(part))


def _functions(part: Python, page: Page) -> None:
    rows = python.looked_at_often(part, inclusive=True)
    if rows:
        page.table(
            python.function_columns(rows, page), "The pipeline's Python functions of each stage by inclusive time"
        )
    page.notes(python.notes_on_functions(part))
