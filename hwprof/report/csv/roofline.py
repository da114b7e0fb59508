"""``roofline.csv``: how near each layer comes to what the machine can do at most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwprof.report.csv.table import Table
from hwprof.report.document.document import Document
from hwprof.report.document.roofline import CodeUnderRoofs, Roofline

FILE: Final = "roofline.csv"


def of_code(rows: Sequence[CodeUnderRoofs | None]) -> dict[str, list[float | str | None]]:
    """Columns of kernels and primitives, beside their own."""
    return {
        "gflops_per_second": [one.gflops if one is not None else None for one in rows],
        "gflops_from": [one.gflops_from if one is not None else None for one in rows],
        "roof": [one.roof if one is not None else None for one in rows],
        "share_of_roof_ratio": [one.share_of_roof if one is not None else None for one in rows],
        "bound": [one.bound if one is not None else None for one in rows],
        "confidence": [one.confidence if one is not None else None for one in rows],
    }


def files(document: Document) -> dict[str, Table]:
    """A row a layer; the inference's has no path."""
    part = document.part(Roofline)
    if part is None:
        return {}
    rows = [*([part.whole] if part.whole is not None else []), *part.rows]
    columns: dict[str, list[float | str | None]] = {
        "layer": [one.path for one in rows],
        "time_ns": [one.time_ns for one in rows],
        "share_ratio": [one.share for one in rows],
        "gflops_per_second": [one.gflops for one in rows],
        "gflops_from": [one.gflops_from for one in rows],
        "roof": [one.roof for one in rows],
        "share_of_roof_ratio": [one.share_of_roof for one in rows],
        "attainable_gflops_per_second": [one.attainable_gflops for one in rows],
        "bound": [one.bound for one in rows],
        "confidence": [one.confidence for one in rows],
        "evidence": [one.evidence for one in rows],
    }
    for level in part.level_gbytes:
        columns[f"{level.lower()}_gbytes_per_second"] = [one.gbytes.get(level) for one in rows]
        columns[f"{level.lower()}_bytes_from"] = [one.bytes_from.get(level) for one in rows]
        columns[f"{level.lower()}_flops_per_byte"] = [one.intensity.get(level) for one in rows]
    return {FILE: Table(columns)}
