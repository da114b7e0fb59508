"""What the analysis says of a run's layers, by the slices that show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.owners import INFERENCE
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.analysis.slice_facts import Facts, SliceFacts, slice_facts
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.trace.annotations import SharedAnnotations

Arguments = Mapping[tuple[str, str], dict[str, SharedAnnotations]]
"""By a slice's kind and path."""


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


def analysed(run: RunDirectory, known: SliceFacts | None = None) -> Analysed:
    """Of a run; the tables that it takes are not kept. ``known``: what somebody else's analysis of it says."""
    if known is None:
        analysis = RunAnalysis(run)
        known = slice_facts(analysis)
        analysis.forget()
    arguments: dict[tuple[str, str], dict[str, SharedAnnotations]] = {}
    _add(arguments, "roofline", known.rooflines)
    _add(arguments, "time_budget", known.budgets)
    return Analysed(frozenset(known.passes), arguments, tuple(known.findings), known.failure)


def _add(arguments: dict[tuple[str, str], dict[str, SharedAnnotations]], name: str, found: Facts) -> None:
    for path, facts in found:
        key = ("layer", path) if path is not None else ("stage", INFERENCE)
        arguments.setdefault(key, {})[name] = SharedAnnotations(facts)
