"""``python_functions.csv`` and ``python_lines.csv``: what each function of Python's took in each stage, and which
kernels each line led to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hwprof.report.csv.table import Field, File, Table, of_struct, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.python import LineKernel, Python, PythonFunction, PythonLine

HEADERS: Final = {
    "share": "share_of_stage_ratio",
    "share_low": "share_of_stage_low_ratio",
    "share_high": "share_of_stage_high_ratio",
}
COLUMNS: Final = of_struct(PythonFunction, HEADERS)
OF_PLACES: Final = {name: Field(PythonLine, name) for name in ("file", "line", "function")}
OF_KERNELS: Final = {name: Field(LineKernel, name) for name in ("kernel", "library")}
OF_BOTH: Final = {"samples": Field(PythonLine, "samples"), "cpu_time_ns": Field(PythonLine, "cpu_ns")}
SHARES: Final = {f"{name}_ratio": Field(PythonLine, name) for name in ("share", "share_low", "share_high")}
SHARES_OF_LINES: Final = {"share_of_line_ratio": Field(LineKernel, "share_of_line")}
FILES: Final = (
    File("python_functions.csv", "a stage, thread and function of Python's (py-spy)", COLUMNS),
    File(
        "python_lines.csv",
        "a line of Python's (without a kernel), or a kernel that it led to (py-spy)",
        {**OF_PLACES, **OF_KERNELS, **OF_BOTH, **SHARES, **SHARES_OF_LINES},
    ),
)


def files(document: Document) -> dict[str, Table]:
    """A row a stage, thread and function; a row a line, and one a line and kernel."""
    part = document.part(Python)
    if part is None:
        return {}
    found = {"python_functions.csv": table_of(part.functions, COLUMNS)}
    if part.missing_lines is None:
        found["python_lines.csv"] = _lines(part.lines)
    return found


def _lines(lines: list[PythonLine]) -> Table:
    """Where ``kernel`` is empty it is the whole line."""
    rows: list[tuple[PythonLine, LineKernel | None]] = []
    for line in lines:
        rows += [(line, None), *((line, kernel) for kernel in line.kernels)]

    def cells(columns: Mapping[str, Field], of: Callable[[PythonLine, LineKernel | None], Any]) -> dict[str, list[Any]]:
        return {header: [getattr(of(*row), field.name, None) for row in rows] for header, field in columns.items()}

    return Table(
        {
            **cells(OF_PLACES, lambda line, _: line),
            **cells(OF_KERNELS, lambda _, kernel: kernel),
            **cells(OF_BOTH, lambda line, kernel: kernel or line),
            **cells(SHARES, lambda line, kernel: line if kernel is None else None),
            **cells(SHARES_OF_LINES, lambda _, kernel: kernel),
        }
    )
