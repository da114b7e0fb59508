"""The page of Python: its lines with the kernels that they led to, and its functions by inclusive time."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.report.document.document import Document
from hwprof.report.document.python import Python, PythonFunction


class HotPython(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --python`` shows. ``python``: with the hottest lines, and the pipeline's functions of each
    stage by inclusive time."""

    run: str
    whole: str
    python: Python


PAGE: Final = HotPython


def select(document: Document, top: int) -> HotPython:
    """The ``top`` lines, and so many functions of each stage. Raises ``HwprofError`` where nobody looked."""
    found = document.part(Python)
    if found is None:
        why = document.absent["python"]
        raise HwprofError(f"nothing is known of Python in this run: {why.reason}", why.remedy)
    functions: list[PythonFunction] = []
    for stage in dict.fromkeys(row.stage for row in found.functions):
        of_stage = [row for row in found.functions if row.stage == stage and row.origin == "pipeline"]
        functions += sorted(of_stage, key=lambda row: -row.inclusive_ns)[:top]
    chosen = msgspec.structs.replace(found, lines=found.lines[:top], functions=functions)
    return HotPython(run=document.run.name, whole=document.whole, python=chosen)
