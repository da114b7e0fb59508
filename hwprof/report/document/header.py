"""The head of the document: run, machine, passes, what could not be measured, events and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hwprof.report.document import metrics
from hwprof.report.document.hottest import Hottest
from hwprof.report.document.metrics import Event, MetricInfo
from hwprof.run.manifest import (
    ClockRecord,
    CollectorRecord,
    CoreKind,
    Machine,
    MetricDefinition,
    PassRecord,
    PassStatus,
    WorkloadRecord,
)
from hwprof.run.notes import Note, NoteKind
from hwprof.run.peaks import Peaks, why_no_loops
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis

DOCUMENT_VERSION: Final = 3
"""2: a part for each section, and the field's words. 1: until then."""

STOLEN_SHARE: Final = 0.005
"""Less stolen time than this is not worth a note."""


class RunInfo(msgspec.Struct, kw_only=True, frozen=True):
    """Which run this is."""

    name: str
    path: str
    created: str
    command: list[str]
    hwprof_version: str
    versions: dict[str, str]


class PassInfo(msgspec.Struct, kw_only=True, frozen=True):
    """One pass and its iterations: ``timed`` only timed their layers, ``counted`` read counters at layer edges,
    ``bare`` watched none; those ``alone`` for one collector each (its name) came when all else was measured."""

    name: str
    status: PassStatus
    reason: str | None
    seconds: float | None
    warmup: int
    timed: int
    counted: int
    bare: int = 0
    alone: list[str]
    disturbed_iterations: tuple[int, ...]  # the numbers of those that others took much time of
    event_sets: list[list[str]]
    collectors: list[CollectorRecord]
    clocks: list[ClockRecord]


class NotMeasured(msgspec.Struct, kw_only=True, frozen=True):
    """A source that gave nothing, or less than it could."""

    what: str  # the source, or all events of it that could not be had
    lost: list[str]  # the source, or the metrics (by title) that are made of these events, and events of no metric
    asked: list[str]  # of ``lost``, its first ones: events and metrics that the user listed by name
    state: str
    reason: str
    remedy: str | None
    passes: list[str]


class Cores(msgspec.Struct, kw_only=True, frozen=True):
    """The cores of one kind, and what the event catalogue calls it."""

    pmu: str | None
    microarchitecture: str | None  # the catalogue's file; null: it does not know this processor
    name: str | None
    cpus: list[int]


class Header(msgspec.Struct, kw_only=True, frozen=True):
    """What stands above the sections."""

    schema_version: int = DOCUMENT_VERSION
    run: RunInfo
    machine: Machine
    cores: list[Cores]
    workload: WorkloadRecord | None
    passes: list[PassInfo]
    figures_from: str | None  # the pass that times and counts are from
    whole: str  # what layers add up to: "inference" or "iteration"
    not_measured: list[NotMeasured]
    notes: list[str]
    events: list[Event]
    metrics: list[MetricInfo]
    hottest: Hottest


def describe(analysis: RunAnalysis) -> dict[str, Any]:
    """The header's fields but for ``hottest``."""
    run, manifest = analysis.run, analysis.run.manifest
    events, infos = metrics.describe(analysis)
    return {
        "figures_from": analysis.main.name if analysis.main is not None else None,
        "whole": analysis.measured.attribution.whole if analysis.measured is not None else "inference",
        "notes": notes(analysis),
        "events": events,
        "metrics": infos,
        "run": RunInfo(
            name=manifest.name,
            path=str(run.path),
            created=manifest.created,
            command=manifest.command,
            hwprof_version=manifest.hwprof_version,
            versions=manifest.versions,
        ),
        "machine": manifest.machine,
        "cores": [_cores(kind) for kind in manifest.machine.cores],
        "workload": _workload(analysis),
        "passes": [_pass(record) for record in manifest.passes],
        "not_measured": [*not_measured(manifest.passes, infos, analysis.definitions), *_no_roofs(manifest.peaks)],
    }


def _workload(analysis: RunAnalysis) -> WorkloadRecord | None:
    """As the pass that prepared it knew it, with what calling it told."""
    from hwprof.analysis.layers import parameters_of_model

    record = analysis.run.manifest.workload
    if record is None:
        return None
    parameters = parameters_of_model(analysis.modules, record.parameters)
    return msgspec.structs.replace(record, parameters=parameters)


def _cores(kind: CoreKind) -> Cores:
    from hwprof.hardware.catalogue import catalogue

    name = None
    if kind.microarchitecture is not None:
        try:
            processor = catalogue(kind.microarchitecture).processor
        except KeyError:  # measured by another version, with a catalogue of its own
            processor = None
        name = processor.name if processor is not None else kind.microarchitecture
    return Cores(pmu=kind.pmu, microarchitecture=kind.microarchitecture, name=name, cpus=list(kind.cpus))


def _stolen(record: PassRecord, threads: int | None, machine: Machine) -> list[str]:
    """A warning where the hypervisor gave this machine's processors to others while it was measured."""
    from hwprof.analysis.noise import LOST_SHARE, stolen_share

    share = stolen_share(record, threads, machine.usable_processors) or 0.0
    if not STOLEN_SHARE <= share <= LOST_SHARE:  # of more, the warning above everything tells
        return []
    return [f"stolen time {100 * share:.1f}%: the hypervisor ran other machines; times and task-clock are longer by it"]


def _pass(record: PassRecord) -> PassInfo:
    from hwprof.analysis.disturbed import disturbed_iterations

    known = record.begin_ns is not None and record.end_ns is not None
    kept = [iteration for iteration in record.iterations if not iteration.warmup]
    alone = [iteration.alone_for for iteration in record.iterations if iteration.alone_for is not None]
    bare = sum(iteration.bare for iteration in record.iterations)
    return PassInfo(
        name=record.name,
        status=record.status,
        reason=record.why_unfinished,
        seconds=(record.end_ns - record.begin_ns) / 1e9 if known else None,  # type: ignore[operator]
        warmup=len(record.iterations) - len(kept) - len(alone) - bare,
        bare=bare,
        timed=sum(not iteration.layers_counted for iteration in kept),
        counted=sum(iteration.layers_counted for iteration in kept),
        alone=alone,
        disturbed_iterations=disturbed_iterations(record),
        event_sets=record.event_sets,
        collectors=record.collectors,
        clocks=record.clocks,
    )


def not_measured(
    passes: list[PassRecord], infos: Sequence[MetricInfo] = (), definitions: Sequence[MetricDefinition] = ()
) -> list[NotMeasured]:
    """What each collector says it could not do; the same word of several events and passes once. ``infos`` and
    ``definitions``: the report's metrics, of which some may be there all the same, from another source. Where the user
    said what to count, that comes first, and metrics that were not asked for are not lost."""
    from hwprof.analysis.missing import asked_by_name, unavailable_events
    from hwprof.hardware.metrics import facts, lost_with

    found: dict[tuple[str, str, str, str | None], list[str]] = {}
    lost: dict[str, list[str]] = {}
    named: dict[str, list[str]] = {}
    known = {info.title for info in infos if info.missing is None}
    for record in passes:
        for collector in record.collectors:
            events: dict[Unavailable, list[str]] = {}
            for event, why in unavailable_events([collector]).items():
                events.setdefault(why, []).append(event)
            for why, names in events.items():
                asked = asked_by_name(collector, record)
                first = [facts()[name].title if name in facts() else name for name in asked or () if name in names]
                wanted = record.metrics if asked is not None else [*record.metrics, *definitions]
                titles = [title for title in lost_with(names, wanted) if title not in {*known, *first}]
                lost.setdefault(", ".join(names), [*first, *titles] or names)
                named.setdefault(", ".join(names), first)
                found.setdefault((", ".join(names), collector.state, why.reason, why.remedy), []).append(record.name)
            if collector.unavailable is not None and not _lost_with(record, collector):
                key = (collector.name, collector.state, collector.unavailable.reason, collector.unavailable.remedy)
                found.setdefault(key, []).append(record.name)
    return [
        NotMeasured(
            what=what,
            lost=lost.get(what, [what]),
            asked=named.get(what, []),
            state=state,
            reason=reason,
            remedy=remedy,
            passes=names,
        )
        for (what, state, reason, remedy), names in found.items()
    ]


def _no_roofs(peaks: Peaks | None) -> list[NotMeasured]:
    """They are measured before the passes."""
    why = why_no_loops(peaks)
    if why is None:
        return []
    return [
        NotMeasured(
            what="peaks",
            lost=["roofs"],
            asked=[],
            state="unavailable",
            reason=why.reason,
            remedy=why.remedy,
            passes=[],
        )
    ]


def _lost_with(record: PassRecord, collector: CollectorRecord) -> bool:
    """Whether the pass's own reason tells why."""
    return record.status == "failed" and bool(collector.reason) and str(collector.reason) in str(record.reason)


def notes(analysis: RunAnalysis) -> list[str]:
    """What a reader must know to read the figures rightly."""
    from hwprof.run.passes import MEASURE

    run, measured = analysis.run, analysis.main
    attribution = analysis.measured.attribution if analysis.measured is not None else None
    found: list[str] = []
    if measured is None:
        found.append("no pass was completed: no figures")
    elif measured.name != MEASURE:
        found.append(f"pass {MEASURE} not completed: times and counts are from pass {measured.name}")
    if attribution is not None and attribution.overlapping_calls:
        found.append(
            f"{attribution.overlapping_calls} layer calls overlap in time: their counts and times are in both layers"
        )
    if measured is not None:
        found += _stolen(measured, analysis.threads, run.manifest.machine)
    workload = run.manifest.workload
    if workload is not None:
        found += [*filter(None, [workload.weights_unsound]), *workload.notes]
    return list(dict.fromkeys([*found, *_said_by_collectors(run.manifest.passes)]))


def _said_by_collectors(passes: list[PassRecord]) -> list[str]:
    """The collectors' own notes, each once; with its passes where not all that the collector ran in have it."""
    from hwprof.analysis.missing import unavailable_events

    told = not_measured(passes)
    ran_in: dict[str, list[str]] = {}
    said: dict[tuple[str, str], list[str]] = {}
    for record in passes:
        for collector in record.collectors:
            ran_in.setdefault(collector.name, []).append(record.name)
            listed = bool(unavailable_events([collector]))  # then `not_measured` has it, name by name
            for note in collector.notes:
                if not (listed and note.kind is NoteKind.NOT_AVAILABLE):
                    said.setdefault((collector.name, str(_shortened(note, told))), []).append(record.name)
    return [
        f"{name}{'' if set(names) == set(ran_in[name]) else _in_passes(names)}: {text}"
        for (name, text), names in said.items()
    ]


def _in_passes(names: list[str]) -> str:
    return f" (pass{'es' if len(names) > 1 else ''} {' and '.join(names)})"


def _shortened(note: Note, told: Sequence[NotMeasured]) -> Note:
    """The note without a reason and its remedy at its end that stand above the notes already."""
    for gap in told:
        if gap.remedy == note.remedy and note.text.endswith(f": {gap.reason}"):
            return msgspec.structs.replace(note, text=note.text.removesuffix(f": {gap.reason}"), remedy=None)
    return note
