"""Why a figure is missing, and what would make it available: from what the collectors said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from hwprof.analysis import uncore
from hwprof.analysis.metrics import missing_operands, operands_of
from hwprof.analysis.reasons import Missing
from hwprof.hardware.metrics import GIVEN_OPERANDS
from hwprof.run.manifest import CollectorRecord, Machine, MetricDefinition, PassRecord

UNAVAILABLE_EVENTS: Final = "unavailable_events"
"""Where a collector's detail says of events and metrics that it could not count: name -> {reason, remedy}."""

COUNTER_COLLECTORS: Final = ("perf", "papi", "instrumented")
"""The sources of counts whose word explains a missing counter, in order."""

UNCORE_COLLECTOR: Final = "uncore"

GIVEN_REASONS: Final = {
    "time": "no iteration was timed",
    "counted-time": "no iteration counted its layers",
    "threads": "the workload does not say how many threads it uses",
    "macs": "no multiply-accumulates are known of these modules",
    "bytes": "the sizes of inputs and outputs are not known of these modules",
}


def metric_missing(
    metric: MetricDefinition, available: Sequence[str], record: PassRecord | None, machine: Machine
) -> Missing | None:
    """Why no owner has this metric; None where at least one can."""
    operands = missing_operands(metric, available)
    if operands:
        return operand_missing(operands[0], record, machine)
    return None if operands_of(metric) else _not_defined(metric.name, record, machine)


def operand_missing(operand: str, record: PassRecord | None, machine: Machine) -> Missing:
    """Why an operand has no value at all."""
    event, _, thread = operand.partition("@")
    if record is None:
        return Missing(event, "no measuring pass was completed")
    if event in GIVEN_OPERANDS:
        return Missing(event, GIVEN_REASONS[event])
    if event.startswith(uncore.PREFIX):
        return _no_traffic(event, record)
    if any(event in events for events in record.event_sets):
        return _counted_in_vain(event, thread, record)
    return _told(event, record) or _not_counted(event, record, machine)


def unavailable_events(collectors: Sequence[CollectorRecord]) -> dict[str, dict[str, Any]]:
    """What the collectors say of the events and metrics that they could not count."""
    return {name: why for record in collectors for name, why in dict(record.detail.get(UNAVAILABLE_EVENTS, {})).items()}


def _told(name: str, record: PassRecord) -> Missing | None:
    """A collector's own word on an event or metric."""
    told = unavailable_events(record.collectors).get(name)
    return Missing(name, told["reason"], told.get("remedy")) if told is not None else None


def _not_defined(name: str, record: PassRecord | None, machine: Machine) -> Missing:
    """Why there is no formula for a metric on that machine."""
    told = _told(name, record) if record is not None else None
    if told is not None:
        return told
    if record is None or not any(info.kind == "hardware" for info in record.events):
        return msgspec.structs.replace(operand_missing("instructions", record, machine), what=name)
    return Missing(name, "no known event of this processor gives it")


def _no_traffic(series: str, record: PassRecord) -> Missing:
    said = next((said for said in record.collectors if said.name == UNCORE_COLLECTOR), None)
    if said is None:
        return Missing(series, f"no {UNCORE_COLLECTOR} collector ran in this pass")
    if said.reason is not None:
        return Missing(series, said.reason, said.remedy)
    counted = said.detail.get("events", {})
    if counted and series not in counted and series != uncore.TOTAL:
        return Missing(series, "this processor's memory controllers count reads and writes together")
    period = said.detail.get("period_ms")
    every = f", one every {period:g} ms" if period else ""
    return Missing(series, f"nothing runs long enough between the readings{every}")


def _counted_in_vain(event: str, thread: str, record: PassRecord) -> Missing:
    """The event stands in an event set, and there is no value all the same."""
    counted = {iteration.event_set for iteration in record.iterations if iteration.layers_counted}
    if not any(event in record.event_sets[number] for number in counted if number is not None):
        return Missing(event, "no iteration counted the event set that holds it", "more iterations: --iterations")
    if thread == "workers":
        return Missing(event, "no other thread than the calling one was counted")
    return Missing(event, "its counter never ran: other programs held the processor's counters")


def _not_counted(event: str, record: PassRecord, machine: Machine) -> Missing:
    named = [said for name in COUNTER_COLLECTORS for said in record.collectors if said.name == name]
    speaking = next((said for said in named if said.reason), None)
    if speaking is not None and speaking.reason is not None:
        return Missing(event, speaking.reason, speaking.remedy)
    if not any(said.state == "ran" for said in named):
        return Missing(event, "no counter collector ran in this pass")
    if not machine.has_core_pmu and not any(info.kind == "hardware" for info in record.events):
        return Missing(event, "this machine shows no hardware counters")
    return Missing(event, "the event was not among those counted in this run")
