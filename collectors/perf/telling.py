"""What the perf collector says of its plan: notes for people, detail for the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from collectors.perf import permission, sweep_library
from collectors.perf.plan import Plan
from hwprof.hardware import perf_event
from hwprof.hardware.countable import Dropped
from hwprof.hardware.packing import Part

NAMES_SHOWN: Final = 4
"""Of events that share a reason, in a note."""


def plan_notes(plan: Plan) -> list[str]:
    """What the user should know about what is counted and what is not."""
    notes = list(plan.notes)
    opening = plan.opening
    if not opening.kernel:
        why = "as asked" if opening.kernel_allowed else f"kernel.perf_event_paranoid is {perf_event.paranoid_level()}"
        remedy = "" if opening.kernel_allowed else f"; to count the kernel's part too: {permission.LOWER_PARANOID}"
        notes.append(f"hardware events count user code only ({why}{remedy})")
    dropped: dict[Dropped, list[str]] = {}
    for name, why_not in plan.dropped.items():
        dropped.setdefault(why_not, []).append(name)
    for why_not, names in dropped.items():
        notes.append(f"not counted: {enumerated(names)}: {permission.with_remedy(why_not)}")
    return notes


def enumerated(names: Sequence[str]) -> str:
    """The names, or the first of many: ``plan_detail`` has all of them."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:NAMES_SHOWN])} and {more} more"


def plan_detail(plan: Plan) -> dict[str, Any]:
    """The plan for the manifest: the usable events by kind, the sets with the counters that they take, and the other
    events with reason and remedy."""
    events = plan.events()
    return {
        "hardware": [event.name for event in events if event.kind == "hardware"],
        "software": [event.name for event in events if event.kind == "software"],
        "kernel": plan.opening.kernel,
        "edge_reader": sweep_library.status(),
        "sets": [[_part_detail(plan, part) for part in event_set.parts] for event_set in plan.sets],
        "unavailable_events": {
            name: {"reason": why_not.reason, "remedy": why_not.remedy} for name, why_not in plan.dropped.items()
        },
    }


def _part_detail(plan: Plan, part: Part) -> dict[str, Any]:
    """A group: which PMU counts it, and how many of its general counters it takes."""
    budget = plan.budgets.get(part.pmu)
    detail: dict[str, Any] = {"pmu": part.pmu, "events": [event.name for event in part.events]}
    if budget is not None and part.pmu is not None:
        detail |= {"general_counters": budget.used(part.events), "of": budget.general}
    return detail
