"""Which iterations others took time from. It needs no tables: a worker asks while a pass goes on."""

from __future__ import annotations

from typing import Final

from hwprof.run.manifest import Disturbance, IterationRecord, PassRecord

DISTURBED_SHARE: Final = 0.05
"""From which part of its time on, lost to others, an iteration counts as disturbed. Threads wait for one another many
times in an iteration, so what each of them lost adds up."""

ENOUGH: Final = 3
"""With so many undisturbed iterations of a kind the disturbed ones are left out: a median of three has no outlier."""

STOLEN_TICK_NS: Final = 10_000_000
"""What stolen time is told in (1 s / USER_HZ, which is 100): one tick may be older than the iteration."""


def is_disturbed(record: IterationRecord) -> bool:
    """Whether others took much of its time, by its own evidence: preempted threads, and time that the hypervisor took.
    What hwprof's own processes took is none: a pass with them has its times from elsewhere, or tells what it costs."""
    found = record.disturbance
    if found is None:
        return False
    waited_ns = waited_for_others_ns(found) or 0
    stolen_ns = max((found.stolen_ns or 0) - STOLEN_TICK_NS, 0)
    return waited_ns + stolen_ns > DISTURBED_SHARE * found.elapsed_ns


def waited_for_others_ns(found: Disturbance) -> int | None:
    """How long its threads waited for a processor that other programs had; None: the kernel does not tell. Without
    preemptions that is a moment for each that is woken, and nobody's doing. A process of hwprof's own makes one thread
    wait for as long as it runs, at most."""
    if found.waited_ns is None:
        return None
    return max(found.waited_ns - found.own_ns, 0) if found.preemptions else 0


def disturbed_iterations(record: PassRecord) -> tuple[int, ...]:
    """The numbers of a pass's disturbed iterations, after warm-up."""
    return tuple(entry.index for entry in record.iterations if not entry.warmup and is_disturbed(entry))
