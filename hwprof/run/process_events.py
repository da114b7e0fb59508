"""Events of the whole process: no counters, but what counters are held against. In the table ``counts`` they have a
thread's number of their own."""

from __future__ import annotations

from typing import Final

WHOLE_PROCESS_TID: Final = 0
"""The ``tid`` of a value that belongs to the process and not to one thread."""

PROCESS_CPU_TIME: Final = "process-cpu-time"
"""The process's CPU time over an iteration by the kernel's own account: what its threads' task-clock must add up to."""

PROCESS_CPU_ERROR: Final = "process-cpu-time-error"
"""By how many nanoseconds more or less that may be: what the process took while counters were read at both edges. Runs
of before have none, and an account that lags by up to a tick of the kernel's clock."""

NEW_THREADS_CPU_TIME: Final = "new-threads-cpu-time"
"""That part of it that threads took which were not there when the iteration began: no counter was open on them."""

BEGUN_THREADS_CPU_TIME: Final = "begun-threads-cpu-time"
"""CPU time of Python's threads that began in an iteration, in each span of it that they were there in: no counter was
open on them, and what they did is in no count of the span's."""

COUNTED_WINDOW: Final = "counted-window"
"""Wall time between the two readings of a span's counters: a little more than the span, which excludes the reading."""

SESSION_EVENTS: Final = frozenset(
    {PROCESS_CPU_TIME, PROCESS_CPU_ERROR, NEW_THREADS_CPU_TIME, BEGUN_THREADS_CPU_TIME, COUNTED_WINDOW}
)
"""Those of every counting pass; no collector may have one."""

COUNTED_CPU_TIME: Final = "counted-cpu-time"
"""Of a collector that does not count all code: CPU time within a span of that whose work is in its counts."""

UNCOUNTED_CPU_TIME: Final = "uncounted-cpu-time"
"""That of the rest: of the process's other threads, and of handlers of signals."""

COVERAGE_EVENTS: Final = frozenset({COUNTED_CPU_TIME, UNCOUNTED_CPU_TIME})

PROCESS_EVENTS: Final = SESSION_EVENTS | COVERAGE_EVENTS
"""The events that stand under ``WHOLE_PROCESS_TID``."""
