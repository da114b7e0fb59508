"""``python_functions.csv`` and ``python_lines.csv``: what each function of Python's took in each stage, and which
kernels each line led to."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.python import LineKernel, Python, PythonFunction, PythonLine

HEADERS: Final = {
    "share": "share_of_stage_ratio",
    "share_low": "share_of_stage_low_ratio",
    "share_high": "share_of_stage_high_ratio",
}


def files(document: Document) -> dict[str, Table]:
    """A row a stage, thread and function; a row a line, and one a line and kernel."""
    part = document.part(Python)
    if part is None:
        return {}
    found = {"python_functions.csv": columns_of(part.functions, fields_of(PythonFunction), HEADERS)}
    if part.missing_lines is None:
        found["python_lines.csv"] = _lines(part.lines)
    return found


def _lines(lines: list[PythonLine]) -> Table:
    """Where ``kernel`` is empty it is the whole line."""
    rows: list[tuple[PythonLine, LineKernel | None]] = []
    for line in lines:
        rows += [(line, None), *((line, kernel) for kernel in line.kernels)]
    return Table(
        {
            "file": [line.file for line, _ in rows],
            "line": [line.line for line, _ in rows],
            "function": [line.function for line, _ in rows],
            "kernel": [kernel.kernel if kernel else None for _, kernel in rows],
            "library": [kernel.library if kernel else None for _, kernel in rows],
            "samples": [(kernel or line).samples for line, kernel in rows],
            "cpu_time_ns": [(kernel or line).cpu_ns for line, kernel in rows],
            "share_ratio": [line.share if kernel is None else None for line, kernel in rows],
            "share_low_ratio": [line.share_low if kernel is None else None for line, kernel in rows],
            "share_high_ratio": [line.share_high if kernel is None else None for line, kernel in rows],
            "share_of_line_ratio": [kernel.share_of_line if kernel else None for _, kernel in rows],
        }
    )
