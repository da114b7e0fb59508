"""Threads: what each did through the inference, and which of them it waited for.

Times are those of one iteration, on average of all, or of those that a thread was there in. Times off a processor are
exact; those on one are shared out by samples, and known to their number. Null is: not measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hwprof.analysis.reasons import Missing
from hwprof.report.document.kernels import no_samples
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis
    from hwprof.analysis.thread_times import ThreadTimes as Analysed


class ThreadTimes(msgspec.Struct, kw_only=True, frozen=True):
    """A thread through the inference of the iterations that it was there in: its times, but for the path's, add up to
    ``elapsed_ns``."""

    tid: int  # the thread's number
    name: str | None  # the thread's
    role: str  # "calling", "team" (waits for others in the OpenMP runtime), "other"
    shares_work: bool  # one of those that ``efficiency`` is of
    iterations: int  # in which it was there
    elapsed_ns: float  # of their inference, on average: what the times are of
    samples: int
    busy_ns: float
    waiting_ns: float  # in the OpenMP runtime, on a processor
    preempted_ns: float
    blocked_ns: dict[str, float]  # off its processor of its own accord, by what for; "blocked": nobody knows
    unsampled_ns: float  # on a processor, and so short that no sample found it
    unknown_ns: float  # for long on no processor that its samples know of, and off it by no switch
    absent_ns: float  # it had not begun, or had ended
    path_ns: float  # of the critical path that lies on it
    path_share: float


class PathPart(msgspec.Struct, kw_only=True, frozen=True):
    """A part of the critical path: a thread, and what it did there. The interval (95%) is of the sampling alone, and
    too wide by what is exact."""

    tid: int  # the thread's number
    state: str  # "busy", "preempted", "barrier latency", "I/O", "lock", …
    cause: (
        str | None
    )  # what the calling thread waited for meanwhile ("lock", "condition", …); null: itself, or its team
    ns: float  # of an iteration, on average
    share: float  # of the thread's time, or of the path
    share_low: float  # its 95% interval
    share_high: float  # as share_low
    samples: int  # so many tell of it


class ThreadsLayer(msgspec.Struct, kw_only=True, frozen=True):
    """The critical path through a layer, and in words what of the threads' time it loses most to."""

    path: str
    elapsed_ns: float
    samples: int  # of the calling thread
    critical_path: list[PathPart]  # empty: these are too few to know
    largest_loss: str | None  # null: it keeps its threads at work


class ThreadStates(msgspec.Struct, kw_only=True, frozen=True):
    """What a thread did in one iteration's inference, by state; it adds up to the iteration's ``elapsed_ns``."""

    tid: int
    states_ns: dict[
        str, float
    ]  # "busy", "waiting", "preempted", "unsampled", "unknown", "absent", or what it was blocked by


class ThreadsIteration(msgspec.Struct, kw_only=True, frozen=True):
    """The critical path through one iteration's inference, and the threads that were there."""

    iteration: int
    elapsed_ns: float
    critical_path: list[PathPart]
    threads: list[ThreadStates]


class Threads(Part, kw_only=True, frozen=True):
    """In the pass that the samples are of."""

    pass_name: str
    iterations: int
    threads_asked: int | None  # with how many threads the workload runs
    elapsed_ns: float  # of the inference
    threads_sharing: int | None  # the work: as many as asked, or as were found busy if these are more
    efficiency: float | None  # busy time of these threads over their number x elapsed time
    period_ns: float  # of processor time between samples: no single moment is known better
    contaminated_share: float  # from this share of a layer's processor time in the OpenMP runtime on, its counters are
    contaminated_layers: list[str]  # contaminated by spinning: they say little of its own code; "whole": all
    few_samples: int  # with fewer, of all threads, a layer is not listed
    reasons_missing: Missing | None  # why nobody knows what threads waited for
    threads: list[ThreadTimes]  # that were sampled in the inference; the calling thread first
    unsampled_threads: int  # that waited in the inference, and hardly worked
    unsampled_blocked_ns: dict[str, float]  # theirs, added up; as the threads' ``blocked_ns``
    critical_path: list[PathPart]  # longest first
    layers: list[ThreadsLayer]  # longest first
    by_iteration: list[ThreadsIteration]


PART: Final = Threads


def build(analysis: RunAnalysis) -> Threads | Unavailable:
    """From the pass that the samples are of."""
    if analysis.sampled is None:
        return no_samples(analysis)
    from hwprof.analysis import parallelism
    from hwprof.analysis.samples import FEW_SAMPLES

    found = analysis.thread_times
    if found is None:
        return Unavailable("the thread that calls the model was not sampled")
    threads = [ThreadTimes(**row) for row in found.by_thread]
    return Threads(
        pass_name=found.taken.record.name,
        iterations=found.iterations,
        threads_asked=found.taken.threads,
        elapsed_ns=found.elapsed_ns / found.iterations,
        threads_sharing=found.threads_sharing(),
        efficiency=found.efficiency(),
        period_ns=found.period_ns(),
        contaminated_share=parallelism.CONTAMINATED,
        contaminated_layers=found.contaminated,
        few_samples=FEW_SAMPLES,
        reasons_missing=_reasons_missing(found, threads),
        threads=threads,
        unsampled_threads=found.unsampled_threads,
        unsampled_blocked_ns=found.unsampled_blocked_ns(),
        critical_path=[PathPart(**part) for part in found.critical_path()],
        layers=[ThreadsLayer(**_with_path(row)) for row in found.layers()],
        by_iteration=[ThreadsIteration(**_with_states(row)) for row in found.by_iteration()],
    )


def _with_path(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "critical_path": [PathPart(**part) for part in row["critical_path"]]}


def _with_states(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**_with_path(row), "threads": [ThreadStates(**one) for one in row["threads"]]}


def _reasons_missing(found: Analysed, threads: list[ThreadTimes]) -> Missing | None:
    detail = found.taken.detail
    if detail is None or detail.reasons or not any("blocked" in one.blocked_ns for one in threads):
        return None
    return Missing(
        "threads leave their processors in the kernel, which this user may not sample",
        "sudo sysctl kernel.perf_event_paranoid=1",
        what="reasons",
    )
