"""``roofline.csv``: how near each layer comes to what the machine can do at most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwprof.report.csv.table import LEVEL, Field, File, Table, table_of
from hwprof.report.document.document import Document
from hwprof.report.document.roofline import CodeUnderRoofs, Roofline, UnderRoofs

FILE: Final = "roofline.csv"
OF_CODE: Final = {
    "gflops_per_second": Field(CodeUnderRoofs, "gflops"),
    "gflops_from": Field(CodeUnderRoofs, "gflops_from"),
    "roof": Field(CodeUnderRoofs, "roof"),
    "share_of_roof_ratio": Field(CodeUnderRoofs, "share_of_roof"),
    "bound": Field(CodeUnderRoofs, "bound"),
    "confidence": Field(CodeUnderRoofs, "confidence"),
}
"""Columns of kernels and primitives, beside their own."""

COLUMNS: Final = {
    "layer": Field(UnderRoofs, "path"),
    "time_ns": Field(UnderRoofs, "time_ns"),
    "share_ratio": Field(UnderRoofs, "share"),
    "gflops_per_second": Field(UnderRoofs, "gflops"),
    "gflops_from": Field(UnderRoofs, "gflops_from"),
    "roof": Field(UnderRoofs, "roof"),
    "share_of_roof_ratio": Field(UnderRoofs, "share_of_roof"),
    "attainable_gflops_per_second": Field(UnderRoofs, "attainable_gflops"),
    "bound": Field(UnderRoofs, "bound"),
    "confidence": Field(UnderRoofs, "confidence"),
    "evidence": Field(UnderRoofs, "evidence"),
}
OF_LEVELS: Final = {
    f"{LEVEL}_gbytes_per_second": Field(UnderRoofs, "gbytes"),
    f"{LEVEL}_bytes_from": Field(UnderRoofs, "bytes_from"),
    f"{LEVEL}_flops_per_byte": Field(UnderRoofs, "intensity"),
}
FILES: Final = (File(FILE, "a layer under this machine's roofs, and what bounds it", {**COLUMNS, **OF_LEVELS}),)


def of_code(rows: Sequence[CodeUnderRoofs | None]) -> dict[str, list[float | str | None]]:
    """``OF_CODE``; nothing of code that is under no roofs."""
    return {header: [getattr(one, field.name, None) for one in rows] for header, field in OF_CODE.items()}


def files(document: Document) -> dict[str, Table]:
    """A row a layer; the inference's has no path."""
    part = document.part(Roofline)
    if part is None:
        return {}
    rows = [*([part.whole] if part.whole is not None else []), *part.rows]
    columns = dict(table_of(rows, COLUMNS).columns)
    for level in part.level_gbytes:
        for header, field in OF_LEVELS.items():
            values = [getattr(one, field.name).get(level) for one in rows]
            columns[header.replace(LEVEL, level.lower())] = values
    return {FILE: Table(columns)}
