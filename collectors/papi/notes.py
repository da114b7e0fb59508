"""What the PAPI collector reports of its plan: notes, and the detail."""

from __future__ import annotations

from collectors.papi.plan import Plan
from collectors.shared.counting.notes import not_counted, user_code_only
from hwprof.collector.contract import Note, NoteKind
from hwprof.run.details import CountingDetail


class PapiDetail(CountingDetail, kw_only=True, tag="counting"):
    """Counts by PAPI. ``every_thread``: false where it counts the main thread only."""

    library: str
    version: str
    every_thread: bool = True


def plan_notes(plan: Plan) -> list[Note]:
    """What the user should know about what is counted and what is not."""
    notes = []
    if not plan.attaches:
        text = "main thread only: to attach to another one it first opens a hardware event, also for software events"
        notes.append(Note(NoteKind.SCOPE, text, "PAPI", "--counters perf counts every thread"))
    if not plan.kernel:
        notes.append(user_code_only("events", kernel_allowed=plan.kernel_allowed))
    notes += not_counted(plan.dropped, plan.metrics)
    if len(plan.sets) > 1:
        text = f"no counters for all events at once: they are counted in {len(plan.sets)} sets in turn"
        notes.append(Note(NoteKind.METHOD, text, "PAPI"))
    return notes


def plan_detail(plan: Plan) -> PapiDetail:
    """The usable events by kind, and the others with their reasons."""
    return PapiDetail(
        library=plan.papi.path,
        version=plan.papi.version,
        hardware=plan.hardware,
        software=[name for name in plan.events if name not in plan.hardware],
        kernel=plan.kernel,
        every_thread=plan.attaches,
        unavailable=dict(plan.dropped),
    )
