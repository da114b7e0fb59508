"""The part of the document that does not depend on figures: run, machine, passes, and what could not be measured."""

from __future__ import annotations

from typing import Any, Final

from hwprof.analysis.attribution import Attribution
from hwprof.analysis.missing import unavailable_events
from hwprof.hardware.catalogue import catalogue
from hwprof.report.document.schema import Cores, NotMeasured, PassInfo, RunInfo
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import CoreKind, Machine, PassRecord

STOLEN_SHARE: Final = 0.005
"""Less stolen time than this is not worth a note."""


def describe(run: RunDirectory) -> dict[str, Any]:
    """The document's fields run, machine, cores, workload, passes and not_measured."""
    manifest = run.manifest
    return {
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
        "workload": manifest.workload,
        "passes": [_pass(record) for record in manifest.passes],
        "not_measured": not_measured(manifest.passes),
    }


def _cores(kind: CoreKind) -> Cores:
    name = None
    if kind.microarchitecture is not None:
        try:
            processor = catalogue(kind.microarchitecture).processor
        except KeyError:  # measured by another version, with a catalogue of its own
            processor = None
        name = processor.name if processor is not None else kind.microarchitecture
    return Cores(pmu=kind.pmu, microarchitecture=kind.microarchitecture, name=name, cpus=list(kind.cpus))


def _stolen(record: PassRecord, machine: Machine) -> list[str]:
    """A warning where the hypervisor gave this machine's processors to others while it was measured."""
    if not record.stolen_ns or not record.measured_ns:
        return []
    share = record.stolen_ns / (record.measured_ns * machine.logical_processors)
    if share < STOLEN_SHARE:
        return []
    return [f"stolen time {100 * share:.1f}%: the hypervisor ran other machines; times and task-clock are longer by it"]


def _pass(record: PassRecord) -> PassInfo:
    known = record.begin_ns is not None and record.end_ns is not None
    kept = [iteration for iteration in record.iterations if not iteration.warmup]
    alone = [iteration.alone_for for iteration in record.iterations if iteration.alone_for is not None]
    return PassInfo(
        name=record.name,
        status=record.status,
        reason=record.reason,
        seconds=(record.end_ns - record.begin_ns) / 1e9 if known else None,  # type: ignore[operator]
        warmup=len(record.iterations) - len(kept) - len(alone),
        timed=sum(not iteration.layers_counted for iteration in kept),
        counted=sum(iteration.layers_counted for iteration in kept),
        alone=alone,
        event_sets=record.event_sets,
        collectors=record.collectors,
        clocks=record.clocks,
    )


def not_measured(passes: list[PassRecord]) -> list[NotMeasured]:
    """What each collector says it could not do; the same word of several events and passes once."""
    found: dict[tuple[str, str, str, str | None], list[str]] = {}
    for record in passes:
        for said in record.collectors:
            events: dict[tuple[str, str | None], list[str]] = {}
            for event, why in unavailable_events([said]).items():
                events.setdefault((why["reason"], why.get("remedy")), []).append(event)
            for (reason, remedy), names in events.items():
                found.setdefault((", ".join(names), said.state, reason, remedy), []).append(record.name)
            if said.state != "ran" or said.reason:
                key = (said.name, said.state, said.reason or "no reason given", said.remedy)
                found.setdefault(key, []).append(record.name)
    return [
        NotMeasured(what=what, state=state, reason=reason, remedy=remedy, passes=names)
        for (what, state, reason, remedy), names in found.items()
    ]


def notes(run: RunDirectory, measured: PassRecord | None, attribution: Attribution | None, wanted: str) -> list[str]:
    """What a reader must know to read the figures rightly."""
    found: list[str] = []
    if measured is None:
        found.append("no pass was completed: no figures")
    elif measured.name != wanted:
        found.append(f"pass {wanted} not completed: times and counts are from pass {measured.name}")
    if attribution is not None and attribution.overlapping_calls:
        found.append(f"{attribution.overlapping_calls} layer calls overlap in time: their counts are in both layers")
    if measured is not None:
        found += _stolen(measured, run.manifest.machine)
    if run.manifest.workload is not None:
        found += run.manifest.workload.notes
    for record in run.manifest.passes:
        for said in record.collectors:
            told = bool(unavailable_events([said]))  # then the notes' own list of them is in `not_measured`
            found += [f"{said.name}: {note}" for note in said.notes if not (told and note.startswith("not counted: "))]
    return list(dict.fromkeys(found))
