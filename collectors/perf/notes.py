"""The perf collector's plan as notes for people and detail for the manifest."""

from __future__ import annotations

from typing import Any

from collectors.perf.plan import Plan
from collectors.shared.counting import group_reads_library
from collectors.shared.counting.notes import not_counted, unavailable_events, user_code_only
from hwprof.hardware.packing import Part


def plan_notes(plan: Plan) -> list[str]:
    """What the user should know about what is counted and what is not."""
    notes = list(plan.notes)
    if not plan.opening.kernel:
        notes.append(user_code_only("hardware events", kernel_allowed=plan.opening.kernel_allowed))
    return notes + not_counted(plan.dropped)


def plan_detail(plan: Plan) -> dict[str, Any]:
    """The plan for the manifest: the usable events by kind, the sets with the counters that they take, and the other
    events with reason and remedy."""
    events = plan.events()
    return {
        "hardware": [event.name for event in events if event.kind == "hardware"],
        "software": [event.name for event in events if event.kind == "software"],
        "kernel": plan.opening.kernel,
        "edge_reader": group_reads_library.status(),
        "sets": [[_part_detail(plan, part) for part in event_set.parts] for event_set in plan.sets],
        "unavailable_events": unavailable_events(plan.dropped),
    }


def _part_detail(plan: Plan, part: Part) -> dict[str, Any]:
    """A group: which PMU counts it, and how many of its general counters it takes."""
    budget = plan.budgets.get(part.pmu)
    detail: dict[str, Any] = {"pmu": part.pmu, "events": [event.name for event in part.events]}
    if budget is not None and part.pmu is not None:
        detail |= {"general_counters": budget.used(part.events), "of": budget.general}
    return detail
