"""What the manifest keeps of a collector that failed, wherever it sits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from hwprof import processes
from hwprof.errors import HwprofError, described
from hwprof.interrupts import Interrupt
from hwprof.run.manifest import CollectorRecord
from hwprof.session.plan import CollectorPlan


@contextmanager
def alone(planned: CollectorPlan, records: list[CollectorRecord]) -> Iterator[None]:
    """Whatever a collector raises inside (libraries panic with a ``BaseException``) costs its own data only, and is
    recorded; not the user's interruption, or a signal that ends the process. Where it forks, the copy ends with it: two
    would carry out one run."""
    original = os.getpid()
    try:
        yield
    except Interrupt:
        raise
    except BaseException as error:
        records.append(failure(planned, error))
    finally:
        processes.end_copy(original)


def failure(planned: CollectorPlan, error: BaseException) -> CollectorRecord:
    """Its record: the reason, and the remedy where the collector gives one."""
    reason, remedy = described(error), None
    if isinstance(error, HwprofError):
        reason = _as_text(error.message)
        remedy = _as_text(error.remedy) if error.remedy is not None else None
    return CollectorRecord(
        name=planned.name,
        state="failed",
        reason=reason,
        remedy=remedy,
        role=planned.role,
        options=planned.options,
        tools=list(planned.tools),
    )


def _as_text(said: object) -> str:
    """What a third party's code has put there, as JSON can hold it."""
    return str(said).encode(errors="replace").decode()
