"""What an analysis says of a run's layers for their slices in a trace: time budget, bound, and findings. Plain data: a
report that another process makes hands them over, as no run need be analysed twice.

These are figures of a layer, over the measured iterations of a pass, and not of a single call. They stand in the passes
that they are made of, the sampled one and the main one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import polars as pl
from polars.exceptions import PolarsError

from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.analysis.run_roofline import UnderRoofs
from hwprof.analysis.time_budget import nested
from hwprof.errors import HwprofError
from hwprof.unavailable import Unavailable

UNDER_ROOFS: Final = ("bound", "evidence", "confidence", "roof", "share_of_roof")
"""What is told of ``UnderRoofs``."""

DIGITS: Final = 4
"""Of a share after the point: samples tell no more."""

Facts = list[tuple[str | None, dict[str, Any]]]
"""By a layer's path; None: of the inference."""


class SliceFacts(msgspec.Struct):
    """What is known of a run's layers."""

    passes: list[str] = []
    rooflines: Facts = []
    budgets: Facts = []
    findings: list[Finding] = []
    failure: str | None = None  # why there is nothing, where there should be


def slice_facts(analysis: RunAnalysis) -> SliceFacts:
    """Of a run. One that cannot be analysed has a trace all the same."""
    try:
        return _of(analysis)
    except (HwprofError, PolarsError) as error:
        return SliceFacts(failure=str(error))


def _of(analysis: RunAnalysis) -> SliceFacts:
    under, sampled, budget = analysis.roofline, analysis.sampled, analysis.time_budget
    rooflines: Facts = []
    if not isinstance(under, Unavailable):
        rows = [*([under.whole] if under.whole is not None else []), *under.rows]
        rooflines = [(one.path, _bound(one)) for one in rows]
    records = [analysis.main, sampled.record if sampled is not None else None]
    findings = [] if isinstance(analysis.findings, Unavailable) else analysis.findings
    return SliceFacts(
        sorted({record.name for record in records if record is not None}),
        rooflines,
        [row for one in (budget, analysis.block_budgets) if one is not None for row in _budgets(one)],
        [one._replace(shared=dict(one.shared)) for one in findings],  # a mapping that can be encoded
    )


def _budgets(budget: pl.DataFrame) -> Iterable[tuple[str | None, dict[str, Any]]]:
    for row in nested(budget):
        parts = {part["part"]: round(part["share"], DIGITS) for part in row["parts"] if part["share"]}
        yield row["path"], {**parts, "samples": row["samples"]}


def _bound(under: UnderRoofs) -> dict[str, Any]:
    facts = {name: getattr(under, name) for name in UNDER_ROOFS}
    share = under.share_of_roof
    return {**facts, "share_of_roof": round(share, DIGITS) if share is not None else None}
