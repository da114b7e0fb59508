"""``python_functions.csv`` and ``python_lines.csv``: what each function of Python's took in each stage, and which
kernels each line led to."""

from __future__ import annotations

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
OF_LINES: Final = {
    **{name: Field(PythonLine, name) for name in ("file", "line", "function")},
    **{name: Field(LineKernel, name) for name in ("kernel", "library")},
    "samples": Field(PythonLine, "samples"),
    "cpu_time_ns": Field(PythonLine, "cpu_ns"),
    **{f"{name}_ratio": Field(PythonLine, name) for name in ("share", "share_low", "share_high")},
    "share_of_line_ratio": Field(LineKernel, "share_of_line"),
}
FILES: Final = (
    File("python_functions.csv", "a stage, thread and function of Python's (py-spy)", COLUMNS),
    File("python_lines.csv", "a line of Python's, or a kernel that it led to: where there is one", OF_LINES),
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
    of_kernels = ("kernel", "library", "share_of_line")  # the others but shares, which are a line's, both have

    def value(line: PythonLine, kernel: LineKernel | None, name: str) -> Any:
        if name in of_kernels:
            return getattr(kernel, name, None)
        if name.startswith("share"):
            return getattr(line, name) if kernel is None else None
        return getattr(kernel if name in ("samples", "cpu_ns") and kernel is not None else line, name)

    return Table({header: [value(*row, field.name) for row in rows] for header, field in OF_LINES.items()})
