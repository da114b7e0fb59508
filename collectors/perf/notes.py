"""What the perf collector reports of its plan: notes, and the detail."""

from __future__ import annotations

import msgspec

from collectors.perf.plan import Plan
from collectors.shared.counting import group_reads_library
from collectors.shared.counting.notes import not_counted, user_code_only
from hwprof.collector.contract import Note
from hwprof.hardware.packing import Part
from hwprof.run.details import CountingDetail, GroupDetail


class PerfDetail(CountingDetail, kw_only=True, tag="counting"):
    """Counts by perf_event_open. ``sets``: the groups of each event set."""

    edge_reader: str
    sets: list[list[GroupDetail]] = msgspec.field(default_factory=list)
    process_cpu_ns: int | None = None
    counted_cpu_ns: int | None = None


def plan_notes(plan: Plan) -> list[Note]:
    """What the user should know about what is counted and what is not."""
    notes = list(plan.notes)
    if not plan.opening.kernel:
        notes.append(user_code_only("hardware events", kernel_allowed=plan.opening.kernel_allowed))
    return notes + not_counted(plan.dropped, plan.metrics)


def plan_detail(plan: Plan) -> PerfDetail:
    """The usable events by kind, the sets with the counters that they take, and the other events with their reasons."""
    events = plan.events()
    return PerfDetail(
        hardware=[event.name for event in events if event.kind == "hardware"],
        software=[event.name for event in events if event.kind == "software"],
        kernel=plan.opening.kernel,
        edge_reader=group_reads_library.status(),
        sets=[[_group_detail(plan, part) for part in event_set.parts] for event_set in plan.sets],
        unavailable=dict(plan.dropped),
    )


def _group_detail(plan: Plan, part: Part) -> GroupDetail:
    budget = plan.budgets.get(part.pmu)
    names = [event.name for event in part.events]
    if budget is None or part.pmu is None:
        return GroupDetail(pmu=part.pmu, events=names)
    return GroupDetail(pmu=part.pmu, events=names, general_counters=budget.used(part.events), of=budget.general)
