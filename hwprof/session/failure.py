"""What the manifest keeps of a collector that failed, wherever it sits."""

from __future__ import annotations

from hwprof.errors import HwprofError, described
from hwprof.run.manifest import CollectorRecord
from hwprof.session.plan import CollectorPlan


def failure(planned: CollectorPlan, error: Exception | SystemExit) -> CollectorRecord:
    """Its record: the reason, and the remedy where the collector gives one."""
    reason, remedy = described(error), None
    if isinstance(error, HwprofError):
        reason, remedy = error.message, error.remedy
    return CollectorRecord(
        name=planned.name, state="failed", reason=reason, remedy=remedy, role=planned.role, options=planned.options
    )
