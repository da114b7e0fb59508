"""What the analysis says of a run's layers, for their slices: time budget, bound, and findings.

These are figures of a layer, over the measured iterations of a pass, and not of a single call. They stand in the passes
that they are made of, the sampled one and the main one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import polars as pl
from polars.exceptions import PolarsError

from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.owners import INFERENCE
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.analysis.run_roofline import UnderRoofs
from hwprof.analysis.time_budget import in_modules, nested
from hwprof.errors import HwprofError
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.trace.annotations import SharedAnnotations
from hwprof.unavailable import Unavailable

Arguments = Mapping[tuple[str, str], dict[str, SharedAnnotations]]
"""By a slice's kind and path."""

UNDER_ROOFS: Final = ("bound", "evidence", "confidence", "roof", "share_of_roof")
"""What the argument ``roofline`` has of ``UnderRoofs``."""

DIGITS: Final = 4
"""Of a share after the point: samples tell no more."""


class Analysed(NamedTuple):
    """What is known of a run's layers."""

    passes: frozenset[str] = frozenset()
    arguments: Arguments = MappingProxyType({})
    findings: Sequence[Finding] = ()
    failure: str | None = None  # why there is nothing, where there should be

    def of_pass(self, record: PassRecord) -> Analysed:
        """Nothing where the figures are made of others."""
        return self if record.name in self.passes else NOTHING


NOTHING: Final = Analysed()


def analysed(run: RunDirectory) -> Analysed:
    """Of a run; the tables that it takes are not kept. A run that cannot be analysed has a trace all the same."""
    analysis = RunAnalysis(run)
    try:
        return _of(analysis)
    except (HwprofError, PolarsError) as error:
        return Analysed(failure=str(error))
    finally:
        analysis.forget()


def _of(analysis: RunAnalysis) -> Analysed:
    under, sampled = analysis.roofline, analysis.sampled
    arguments: dict[tuple[str, str], dict[str, SharedAnnotations]] = {}
    if not isinstance(under, Unavailable):
        rows = [*([under.whole] if under.whole is not None else []), *under.rows]
        _add(arguments, "roofline", ((one.path, _bound(one)) for one in rows))
    if analysis.time_budget is not None:
        _add(arguments, "time_budget", _budgets(analysis.time_budget, analysis.modules))
    records = [analysis.main, sampled.record if sampled is not None else None]
    passes = frozenset(record.name for record in records if record is not None)
    return Analysed(passes, arguments, () if isinstance(analysis.findings, Unavailable) else analysis.findings)


def _add(arguments: dict[Any, Any], name: str, found: Iterable[tuple[str | None, dict[str, Any]]]) -> None:
    """A path that is None is the inference."""
    for path, facts in found:
        key = ("layer", path) if path is not None else ("stage", INFERENCE)
        arguments.setdefault(key, {})[name] = SharedAnnotations(facts)


def _budgets(budget: pl.DataFrame, modules: pl.DataFrame) -> Iterable[tuple[str | None, dict[str, Any]]]:
    for row in [*nested(budget), *nested(in_modules(budget, modules))]:
        parts = {part["part"]: round(part["share"], DIGITS) for part in row["parts"] if part["share"]}
        yield row["path"], {**parts, "samples": row["samples"]}


def _bound(under: UnderRoofs) -> dict[str, Any]:
    facts = {name: getattr(under, name) for name in UNDER_ROOFS}
    share = under.share_of_roof
    return {**facts, "share_of_roof": round(share, DIGITS) if share is not None else None}
