"""What a report says of threads: what each did through the inference, and which of them it waited for.

Times are those of one iteration, on average. Times off a processor are exact; those on one are shared out by samples,
and known to their number. Null is: not measured.
"""

from __future__ import annotations

import msgspec

from hwprof.analysis.missing import Missing


class ThreadTimes(msgspec.Struct, kw_only=True, frozen=True):
    """A thread through the inference: all of these but the last two add up to its time."""

    tid: int
    name: str | None
    role: str  # "calling", "team" (waits for others in the OpenMP runtime), "other"
    samples: int
    busy_ns: float
    waiting_ns: float  # in the OpenMP runtime, on a processor
    preempted_ns: float
    blocked_ns: dict[str, float]  # off its processor of its own accord, by what for; "blocked": nobody knows
    unsampled_ns: float  # on a processor, and so short that no sample found it
    absent_ns: float  # it had not begun
    path_ns: float  # of the critical path that lies on it
    path_share: float


class PathPart(msgspec.Struct, kw_only=True, frozen=True):
    """A part of the critical path: a thread, and what it did there. The interval (95%) is of the sampling alone, and
    too wide by what is exact."""

    tid: int
    state: str  # "busy", "preempted", "barrier latency", "I/O", "lock", …
    ns: float
    share: float
    share_low: float
    share_high: float
    samples: int


class WaitingLayer(msgspec.Struct, kw_only=True, frozen=True):
    """The critical path through a layer, and in words what of the threads' time it loses most to."""

    path: str
    elapsed_ns: float
    samples: int  # of the calling thread
    critical_path: list[PathPart]
    finding: str | None  # null: it keeps its threads at work


class WaitingIteration(msgspec.Struct, kw_only=True, frozen=True):
    """The critical path through one iteration's inference."""

    iteration: int
    elapsed_ns: float
    critical_path: list[PathPart]


class Waiting(msgspec.Struct, kw_only=True, frozen=True):
    """Threads and waiting in the pass that the samples are of."""

    name: str
    iterations: int
    threads_asked: int | None  # with how many threads the workload runs
    elapsed_ns: float  # of the inference
    efficiency: float | None  # busy time of the calling thread and its team over threads x elapsed time
    period_ns: float  # of processor time between samples: no single moment is known better
    mixed_share: float  # from this share of a layer's processor time in the OpenMP runtime on, see ``mixed_layers``
    mixed_layers: list[str]  # whose counters hold so much waiting that they say little of its code; "whole": all
    few_samples: int  # with fewer of the calling thread, a layer is not listed
    reasons_missing: Missing | None  # why nobody knows what threads waited for
    threads: list[ThreadTimes]  # the calling thread first
    critical_path: list[PathPart]  # longest first
    layers: list[WaitingLayer]  # longest first
    by_iteration: list[WaitingIteration]
