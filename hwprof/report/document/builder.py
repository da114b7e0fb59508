"""Makes the document from a run: its header, and the part of each section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from hwprof.errors import DamagedError
from hwprof.report import sections
from hwprof.report.document.document import Document
from hwprof.report.document.header import describe
from hwprof.report.document.hottest import Hottest, key_of, rank, refuse_unknown
from hwprof.report.document.layers import Layers
from hwprof.report.document.part import Part
from hwprof.report.document.stages import Stages
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis
    from hwprof.run.directory import RunDirectory

NEEDED: Final = frozenset({"spans", "layers"})
"""Without these tables there is nothing to report."""

OF_SAMPLES: Final = frozenset(
    {
        *("samples", "switches", "lifetimes", "threads", "stacks", "mappings", "kernels", "python_frames"),
        *("kernel_counts", "repeated_spans"),
    }
)
"""Tables that explain one another: a thread without its switches was at work all the time."""

SORT: Final = "time"
"""By what the hottest layers are sorted unless the user asks for something else."""


def build(
    run: RunDirectory,
    top: int | None = None,
    sort: str = SORT,
    first: Callable[[RunAnalysis], None] | None = None,
    ahead: RunAnalysis | None = None,
) -> Document:
    """The report of a run; ``top`` and ``sort`` choose ``hottest`` only, the rest is everything there is.

    Figures come from the pass ``measure`` (where there is none, from the first completed one, and the document says
    so), operators from ``trace``. What is made of damaged files is absent. ``first`` gets the run's analysis before all
    else; ``ahead``: one of the same run, when some passes had still to come.

    Raises ``UsageError`` for an unknown ``sort``, ``HwprofError`` for one not measured, ``DamagedError`` where too
    little is left.
    """
    from hwprof.analysis.run_analysis import RunAnalysis

    analysis = ahead or RunAnalysis(run)
    if ahead is not None:
        ahead.go_on_with(run)
    if first is not None:
        first(analysis)
    found = whole = _parts(analysis)
    damage, left_out = dict(found.damage), set[str]()
    while found.damage and (tables := _with_those_that_they_explain(found.damage) - left_out):
        left_out |= tables
        analysis = RunAnalysis(run.without(left_out))
        found = _parts(analysis)
        damage |= found.damage
    for error in run.damage_elsewhere():  # the trace, or a page that this run has nothing for, would be made of it
        damage.setdefault(error.message, error)
    if damage and not any(isinstance(part, (Layers, Stages)) for part in found.parts.values()):
        raise next(iter(damage.values()))
    by_damage = [Unavailable(error.message, error.remedy) for error in damage.values()]  # of what was there without
    document = Document(
        **describe(analysis),
        hottest=Hottest(sort=SORT, top=None, layers=[]),
        parts=found.parts,
        absent={name: whole.absent.get(name) or by_damage[0] for name in found.absent} if by_damage else found.absent,
        damaged=tuple(damage),
    )
    analysis.forget()
    return ranked(document, top, sort)


class _Parts(NamedTuple):
    """Those that could be made, why others could not, and the damage that was met."""

    parts: dict[str, Part]
    absent: dict[str, Unavailable]
    damage: dict[str, DamagedError]  # by message


def _parts(analysis: RunAnalysis) -> _Parts:
    parts: dict[str, Part] = {}
    absent: dict[str, Unavailable] = {}
    damage: dict[str, DamagedError] = {}
    for section in sections.of_room("document"):
        found: Part | Unavailable
        try:
            found = section.document.build(analysis)
        except DamagedError as error:
            damage.setdefault(error.message, error)
            found = Unavailable(error.message, error.remedy)
        if isinstance(found, Unavailable):
            absent[section.name] = found
        else:
            parts[section.name] = found
    return _Parts(parts, absent, damage)


def _with_those_that_they_explain(damage: Mapping[str, DamagedError]) -> set[str]:
    """The damaged tables that a report can do without, each with those whose rows say something else without it."""
    tables = {error.table for error in damage.values() if error.table is not None} - NEEDED
    return tables | (OF_SAMPLES if tables & OF_SAMPLES else set())


def ranked(document: Document, top: int | None, sort: str) -> Document:
    """The document with other hottest layers. Raises ``UsageError`` for an unknown ``sort``, ``HwprofError`` for one
    that was not measured."""
    sort = key_of(sort, document.metrics)
    layers = document.part(Layers)
    if layers is not None:
        paths = rank(layers, sort, top, document.metrics, document.events)
    else:  # nothing was measured: any metric is a key, and there is nothing to sort
        from hwprof.hardware.metrics import facts

        refuse_unknown(sort, list(facts()))
        paths = []
    return msgspec.structs.replace(document, hottest=Hottest(sort=sort, top=top, layers=paths))
