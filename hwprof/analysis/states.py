"""What a thread can be said to do at a moment. Off its processor of its own accord, its state is what it waits for, as
the table ``switches`` names it ("lock", "I/O", …)."""

from __future__ import annotations

from typing import Final

BUSY: Final = "busy"
WAITING: Final = "waiting"
"""In the OpenMP runtime, on a processor."""

PREEMPTED: Final = "preempted"
BARRIER: Final = "barrier"
"""In the OpenMP runtime, off its processor."""

BLOCKED: Final = "blocked"
"""Off its processor of its own accord, nobody knows what for."""

STOPPED: Final = "stopped"
"""By a debugger, or one who looks at its stack: it goes on where it was."""

ABSENT: Final = "absent"
"""Before a thread's creation, or after its end."""

UNSAMPLED: Final = "unsampled"
"""On a processor for so short a time that no sample found it."""

BARRIER_LATENCY: Final = "barrier latency"
"""Of the critical path: all threads wait, for each other: barriers that are reached and not yet left, and wake-ups."""

UNKNOWN: Final = "unknown"
"""For a long time neither off its processor by its switches nor sampled on it: it did no work, and nobody knows what it
did."""

UNOBSERVED: Final = "unobserved thread"
"""Of the critical path: the calling thread waits, and no sample says for whom: the call was too short."""

TEAM_WAITS: Final = (WAITING, BARRIER)

NOT_OF_ITS_OWN_ACCORD: Final = frozenset({PREEMPTED, BARRIER, STOPPED, UNKNOWN, "GIL", "page fault", "memory map"})
"""States off a processor of a thread that has work: others keep it from that, or it belongs to the work."""
