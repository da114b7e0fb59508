"""What should be known of the samples of a pass: what they cost, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collectors.sampler.plan import Plan
from collectors.sampler.recorder import Recorder
from hwprof.collector.contract import Note, NoteKind
from hwprof.run.details import UNSAMPLED_SHARE, SamplingDetail

if TYPE_CHECKING:
    import polars as pl

COST_SHARE: Final = 0.01
"""Of the time, taken by sampling, that is worth a note."""

MANY_UNSAMPLED: Final = 20
"""Threads that had no sample at all: then these are what is missing. Fewer of them only slept."""

BUSY_SHARE: Final = 0.1
"""Of the busiest thread's samples, that a thread has which works along with it."""


def busy_threads(samples: pl.DataFrame) -> int:
    """How many threads did the work at a time, by the rows of ``samples``: no more than there were processors."""
    counts = samples["tid"].value_counts()["count"].to_numpy()
    return min(int((counts >= BUSY_SHARE * counts.max(initial=0)).sum()), samples["cpu"].n_unique())


def represented(counted: int, sampled: int, process_ns: int | None, sampled_ns: int) -> tuple[float | None, bool]:
    """Which part of what the threads did samples stand for, as far as it is known; and whether it is less of the
    process than of the threads that were sampled: what new ones did before that.

    ``counted`` and ``sampled``: of the event, by these threads and by the samples. ``process_ns``: the process's CPU
    time meanwhile; None: not known, or not to be compared. ``sampled_ns``: that which the samples stand for.
    """
    of_threads = sampled / counted if counted else None
    if not process_ns:
        return of_threads, False
    of_process = min(sampled_ns / process_ns, 1.0)
    if of_threads is not None and of_threads <= of_process + UNSAMPLED_SHARE / 2:
        return of_threads, False
    return of_process, True


def cost_notes(cost_ns: float | None, frequency_hz: int, threads: int) -> list[Note]:
    """What so many working threads lose by samples that take ``cost_ns`` of processor time each.

    Each thread loses the cost of its own samples. In a parallel region that all wait for, one thread's sample makes the
    others wait as well: at worst, with regions shorter than the time between samples, the costs of all add up.
    """
    own = (cost_ns or 0.0) * frequency_hz / 1e9
    most = own * threads
    if cost_ns is None or most <= COST_SHARE:
        return []
    waiting = f", up to {_percent(most)} where {threads} threads wait for one another (OpenMP)" if threads > 1 else ""
    bearable = int(COST_SHARE * 1e9 / (cost_ns * max(threads, 1)))
    remedy = f"--frequency {bearable}: {COST_SHARE:.0%} at most" if bearable else None
    interrupt = f"an interrupt takes {cost_ns / 1e3:.3g} µs here"
    text = f"sampling took about {_percent(own)} of each thread's time{waiting}: {interrupt}"
    return [Note(NoteKind.OVERHEAD, text, remedy=remedy)]


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


def sampling_notes(plan: Plan, recorder: Recorder, detail: SamplingDetail) -> list[Note]:
    """Costs, losses, and threads without samples; ``detail``: of the same samples."""
    notes = []

    def note(kind: NoteKind, text: str, subject: str | None = None, remedy: str | None = None) -> None:
        notes.append(Note(kind, text, subject, remedy))

    if recorder.failure is not None:
        note(NoteKind.INCOMPLETE, f"missing, since emptying the rings failed: {recorder.failure}", "samples")
    if recorder.lost:
        note(
            NoteKind.INCOMPLETE,
            f"{recorder.lost} records of thread creation and library loading were lost: too many at once",
        )
    if detail.lost:
        text = f"{detail.lost} records were lost: rings of {detail.ring_bytes >> 10} KiB were full"
        note(NoteKind.INCOMPLETE, text, remedy="a lower --frequency, or ulimit -l unlimited")
    notes += cost_notes(detail.sample_cost_ns, plan.opening.frequency_hz, detail.busy_threads)
    if detail.throttled:
        text = f"the kernel throttled sampling {detail.throttled} times, since it took too long"
        note(NoteKind.INCOMPLETE, text, remedy="a lower --frequency")
    if detail.silent:
        text = "stayed 0 between samples: it never happened here, or this processor (or its hypervisor) does not"
        note(NoteKind.SUSPECT, f"{text} implement it", ", ".join(detail.silent))
    if detail.torn_bytes:
        note(NoteKind.INCOMPLETE, f"{detail.torn_bytes} bytes of records were damaged")
    if recorder.missed:
        note(NoteKind.INCOMPLETE, f"threads that ended before they could be sampled: {recorder.missed}")
    if recorder.refused:
        reasons = ", ".join(sorted(set(recorder.refused.values())))
        note(NoteKind.INCOMPLETE, f"threads that could not be sampled ({len(recorder.refused)}): {reasons}")
    share = detail.represented_share
    if share is not None and share < 1 - UNSAMPLED_SHARE:
        text, remedy = _why_unsampled(plan, detail)
        none = f"no sample stands for {1 - share:.0%} of the threads' {plan.event}"
        note(NoteKind.INCOMPLETE, f"{none}{text}", remedy=remedy)
    return notes


def _why_unsampled(plan: Plan, detail: SamplingDetail) -> tuple[str, str | None]:
    """The reason, and what would help."""
    if detail.unsampled_of_new:
        return ": what new threads did before they could be sampled; intervals hold for it", None
    if detail.unsampled_threads >= MANY_UNSAMPLED:
        between = f"{1000 / plan.opening.frequency_hz:.3g} ms between samples"
        text = f": {detail.unsampled_threads} of {detail.threads} threads did less than the {between}"
        return text, "a higher --frequency"
    return ", most of it in the kernel, which is not sampled" if plan.opening.exclude_kernel else "", None
