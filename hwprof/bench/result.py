"""What is known of a case when it has been measured. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from hwprof.bench.energy import Energy
from hwprof.bench.matrix import Case
from hwprof.bench.samples import Failure, Model, Samples
from hwprof.run.trials import Positive

PERCENTILES: Final = (90, 99)

Rate = Annotated[float, msgspec.Meta(ge=0)]


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Of a repeated time, in nanoseconds: the median with its absolute deviation, and percentiles by the nearest
    rank."""

    number: Positive
    p50_ns: Positive
    p90_ns: Positive
    p99_ns: Positive
    mad_ns: Rate
    mean_ns: Rate


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One case. Where it failed there is nothing but why."""

    case: Case
    created: str  # ISO 8601 with offset
    seconds: Rate  # that it took
    machine: str = ""  # the name of the one that did it; empty: the one that the bench was begun on
    failure: Failure | None = None
    model: Model | None = None
    forward: Times | None = None  # the model's time, by forward
    process_p50_ns: list[Positive] = []  # the same of each process, its median; none: by an older version
    iteration: Times | None = None  # with all stages
    value_s: Rate | None = None  # how long pyperf's values took, the median; null: by an older version
    processes: int = 0
    peak_bytes: Positive | None = None
    others_share: Rate | None = None  # of all processors' time, that others used meanwhile; null: not told
    energy: Energy | None = None  # null: of a bench by a version that read no meter

    @property
    def key(self) -> str:
        """Of its case."""
        return self.case.key

    @property
    def images_per_s(self) -> float | None:
        """Of the inference alone."""
        if self.model is None or self.forward is None:
            return None
        return self.model.images / self.model.forwards / self.forward.p50_ns * 1e9

    @property
    def end_to_end_per_s(self) -> float | None:
        """Images a second with all stages."""
        return self.model.images / self.iteration.p50_ns * 1e9 if self.model and self.iteration else None

    @property
    def gflops(self) -> float | None:
        """FLOPs of a forward by its products, in 1e9: two for each multiply-accumulate."""
        return 2 * self.model.macs / 1e9 if self.model is not None and self.model.macs else None

    @property
    def gflops_per_s(self) -> float | None:
        """At the median."""
        return self.gflops / self.forward.p50_ns * 1e9 if self.gflops is not None and self.forward else None


def times_of(values_ns: Sequence[int]) -> Times | None:
    """None of no values."""
    if not values_ns:
        return None
    ordered = sorted(values_ns)
    p50 = round(statistics.median(ordered))
    p90, p99 = (ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)] for percent in PERCENTILES)
    return Times(
        number=len(ordered),
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        mad_ns=statistics.median(abs(one - p50) for one in ordered),
        mean_ns=statistics.fmean(ordered),
    )


def measured(
    case: Case,
    created: str,
    seconds: float,
    model: Model,
    samples: Sequence[Samples],
    others_share: float | None,
    energy: Energy | None = None,
) -> Result:
    """By all its processes together. Raises ``ValueError`` where they have no times."""
    forward = times_of([one for process in samples for one in process.inference_ns])
    if forward is None:
        raise ValueError("no process measured anything")
    return Result(
        case=case,
        created=created,
        seconds=seconds,
        model=model,
        forward=forward,
        process_p50_ns=[one.p50_ns for process in samples if (one := times_of(process.inference_ns)) is not None],
        iteration=times_of([one for process in samples for one in process.iteration_ns]),
        value_s=statistics.median((one.end_ns - one.begin_ns) / 1e9 for process in samples for one in process.values),
        processes=len(samples),
        peak_bytes=max((one.peak_bytes or 0 for one in samples), default=0) or None,
        others_share=others_share,
        energy=energy,
    )
