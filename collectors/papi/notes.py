"""The PAPI collector's plan as notes for people and detail for the manifest."""

from __future__ import annotations

from typing import Any

from collectors.papi.plan import Plan
from collectors.shared.counting.notes import not_counted, unavailable_events, user_code_only


def plan_notes(plan: Plan) -> list[str]:
    """What the user should know about what is counted and what is not."""
    notes = []
    if not plan.attaches:
        notes.append(
            "PAPI counts the main thread only: to attach to another one it first opens a hardware event, also for"
            " software events (perf counts every thread)"
        )
    if not plan.kernel:
        notes.append(user_code_only("events", kernel_allowed=plan.kernel_allowed))
    notes += not_counted(plan.dropped)
    if len(plan.sets) > 1:
        notes.append(
            f"PAPI finds no counters for all events at once: they are counted in {len(plan.sets)} sets in turn"
        )
    return notes


def plan_detail(plan: Plan) -> dict[str, Any]:
    """The plan for the manifest: the usable events by kind, and the others with reason and remedy."""
    return {
        "library": plan.papi.path,
        "version": plan.papi.version,
        "hardware": plan.hardware,
        "software": [name for name in plan.events if name not in plan.hardware],
        "kernel": plan.kernel,
        "every_thread": plan.attaches,
        "unavailable_events": unavailable_events(plan.dropped),
    }
