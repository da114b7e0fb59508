"""Why a figure is missing, and what would make it available: from what the collectors said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hwprof.analysis import uncore
from hwprof.analysis.cpu_time import TASK_CLOCK, Uncounted
from hwprof.analysis.metrics import CLOCKED, events_of, missing_operands, operands_of
from hwprof.analysis.reasons import NO_SAMPLES, Missing
from hwprof.hardware.metrics import GIVEN_OPERANDS, SAMPLED_OPERANDS, vocabulary
from hwprof.run.details import CountingDetail, DramDetail
from hwprof.run.manifest import CollectorRecord, Machine, MetricDefinition, PassRecord
from hwprof.run.process_events import COUNTED_WINDOW
from hwprof.run.roles import Role
from hwprof.unavailable import Unavailable

GIVEN_REASONS: Final = {
    "time": "no iteration was timed",
    "counted-time": "no iteration counted its layers",
    "threads": "the workload does not say how many threads it uses",
    "macs": "no multiply-accumulates are known of these modules",
    "bytes": "the sizes of inputs and outputs are not known of these modules",
}

EVENTS: Final = "events"
"""The option of counters that has the user's list, in a collector's record."""

COUNTER_READS: Final = "counter reads are in the CPU time, not in the wall time"
"""Of what is left between layers: the workers are read there."""


def metric_missing(
    metric: MetricDefinition,
    available: Sequence[str],
    record: PassRecord | None,
    machine: Machine,
    sampled: Unavailable | None = None,
) -> Missing | None:
    """Why no owner has this metric; None where at least one can. ``sampled``: why samples gave no cycles."""
    operands = missing_operands(metric, available)
    if operands and operands[0] in SAMPLED_OPERANDS and record is not None:
        why = sampled or NO_SAMPLES
        return Missing(why.reason, why.remedy, what=operands[0])
    if operands:
        return operand_missing(operands[0], record, machine)
    return None if operands_of(metric) else _not_defined(metric.name, record, machine)


def operand_missing(operand: str, record: PassRecord | None, machine: Machine) -> Missing:
    """Why an operand has no value at all."""
    event, _, thread = operand.partition("@")
    if record is None:
        return Missing("no measuring pass was completed", what=event)
    if event in GIVEN_OPERANDS:
        return Missing(GIVEN_REASONS[event], what=event)
    if event.startswith(uncore.PREFIX):
        return _no_traffic(event, record)
    if any(event in events for events in record.event_sets):
        return _counted_in_vain(event, thread, record)
    return _reported(event, record) or _not_counted(event, record, machine)


def is_cpu_usage(metric: MetricDefinition) -> bool:
    """Whether it sets the CPU time of all threads against the wall time."""
    names = set(operands_of(metric))
    return TASK_CLOCK in names and bool(CLOCKED & names)


def uncounted_missing(metric: MetricDefinition, found: Uncounted | None) -> Missing | None:
    """That much of the CPU time which the metric is made of was counted of no thread."""
    if found is None or not is_cpu_usage(metric):
        return None
    return Missing(f"{found.share:.1%} of the process's CPU time was not counted", what=TASK_CLOCK)


def own_code_missing(metric: MetricDefinition, available: Sequence[str]) -> Missing | None:
    """Why neither modules' own code nor what is unattributed has this metric, though it was measured; None where they
    may have it. ``available`` as for ``metric_missing``."""
    between_readings = COUNTED_WINDOW in available and "counted-time" in operands_of(metric)
    return Missing(COUNTER_READS, what="counted-time") if between_readings else None


def unavailable_events(collectors: Sequence[CollectorRecord]) -> dict[str, Unavailable]:
    """What the collectors report of the events and metrics that they could not count."""
    return {
        name: why
        for record in collectors
        if (counted := record.detail_as(CountingDetail)) is not None
        for name, why in counted.unavailable.items()
    }


def asked_by_name(collector: CollectorRecord, record: PassRecord) -> list[str] | None:
    """The events and metrics that the user listed one by one (``--events``) and this collector could not count, in the
    list's order; an event under another name (an alias, ``name=``) is one that no metric of the pass is made of. None:
    the user asked for none, and the usual ones are counted."""
    items = collector.options.get(EVENTS)
    if not isinstance(items, list):
        return None
    used = {event for metric in record.metrics for event in events_of(metric)} | {one.name for one in record.metrics}
    place = {item.lower(): number for number, item in enumerate(items) if isinstance(item, str)}
    grouped = {metric.name for metric in vocabulary() if metric.name not in place}
    names = [name for name in unavailable_events([collector]) if name.lower() in place or name not in used | grouped]
    return sorted(names, key=lambda name: place.get(name.lower(), len(place)))


def _reported(name: str, record: PassRecord) -> Missing | None:
    """A collector's own reason for an event or metric."""
    why = unavailable_events(record.collectors).get(name)
    return Missing(why.reason, why.remedy, what=name) if why is not None else None


def _not_defined(name: str, record: PassRecord | None, machine: Machine) -> Missing:
    """Why there is no formula for a metric on that machine."""
    reported = _reported(name, record) if record is not None else None
    if reported is not None:
        return reported
    if record is None or not any(info.kind == "hardware" for info in record.events):
        return replace(operand_missing("instructions", record, machine), what=name)
    return Missing("no known event of this processor gives it", what=name)


def _no_traffic(series: str, record: PassRecord) -> Missing:
    collector = next((one for one in record.collectors if one.role is Role.DRAM), None)
    if collector is None:
        return Missing("no collector of DRAM traffic ran in this pass", what=series)
    if collector.reason is not None:
        return Missing(collector.reason, collector.remedy, what=series)
    detail = collector.detail_as(DramDetail) or DramDetail()
    if detail.events and series not in detail.events and series != uncore.TOTAL:
        return Missing("this processor's memory controllers count reads and writes together", what=series)
    every = f", one every {detail.period_ms:g} ms" if detail.period_ms else ""
    return Missing(f"nothing runs long enough between the readings{every}", what=series)


def _counted_in_vain(event: str, thread: str, record: PassRecord) -> Missing:
    """The event stands in an event set, and there is no value all the same."""
    counted = {iteration.event_set for iteration in record.iterations if iteration.layers_counted}
    if not any(event in record.event_sets[number] for number in counted if number is not None):
        return Missing("no iteration counted the event set that holds it", "more iterations: --iterations", what=event)
    if thread == "workers":
        return Missing("no other thread than the calling one was counted", what=event)
    return Missing("its counter never ran: other programs held the processor's counters", what=event)


def _not_counted(event: str, record: PassRecord, machine: Machine) -> Missing:
    counters = [one for one in record.collectors if one.role is Role.COUNTER]
    why = next((one.unavailable for one in counters if one.reason), None)
    if why is not None:
        return Missing(why.reason, why.remedy, what=event)
    if not any(one.state == "ran" for one in counters):
        return Missing("no counter collector ran in this pass", what=event)
    if not machine.has_core_pmu and not any(info.kind == "hardware" for info in record.events):
        return Missing("this machine shows no hardware counters", what=event)
    return Missing("the event was not among those counted in this run", what=event)
