"""How far a pass's times are to be trusted: what others took, how much times vary, and whether they drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

import polars as pl

from hwprof.analysis.attribution import Attribution
from hwprof.analysis.disturbed import disturbed_iterations, waited_for_others_ns
from hwprof.analysis.owners import WHOLE
from hwprof.run.manifest import Disturbance, PassRecord

LOST_SHARE: Final = 0.05
"""From which share of the threads' time on, preempted or stolen, a run is a noisy one."""

FAR: Final = 1.2
"""From which ratio of median and minimum on times vary so much that the median is not the model's own."""

FEWEST_SLOW: Final = 2
MANY_SLOW: Final = 0.2
"""Part of the iterations. A model that alternates between two amounts of work has a median of either, and no spread."""

DRIFT: Final = 0.05
"""By how much the last third of the iterations differs from the first one at least, to be called a drift."""

FEW_FOR_DRIFT: Final = 9
"""With fewer iterations than that, thirds have no median to speak of."""

BEHIND_OTHERS: Final = 2
"""Times as long as others have a processor a pass's threads wait because of them at most, roughly: beside two threads
that share another processor meanwhile."""

NORMAL_99: Final = 2.575829
"""Standard deviations of a normal distribution between which 99% of it lie."""


@dataclass(frozen=True)
class Noise:
    """Of the iterations after warm-up. Shares are of the time of the threads that the workload runs with; ``None`` is:
    not known."""

    iterations: int
    disturbed: int  # by their own evidence
    disturbed_iterations: tuple[int, ...]  # their numbers
    left_out_iterations: tuple[int, ...]  # of those, the ones that no median is of: enough others remain
    timed: int  # that times are of
    timed_left_out: int  # of their kind (only timed, if there are such): disturbed, while enough others remain
    timed_disturbed: int  # of those that times are of: too few others remain
    counted: int  # that counts at layer edges are of
    counted_left_out: int  # of their kind
    preempted_share: float | None  # ready to run, and without a processor
    among_themselves: bool  # most of that is behind other threads of the process
    stolen_share: float | None  # while the hypervisor ran something else
    throttled: int | None  # how often the control group was stopped at its limit; None: it has none
    throttled_ns: int | None  # for how long in all, summed over processors
    limited: bool  # that took too much
    mean_ns: float | None  # of an iteration whose layers are timed, by all of them, disturbed or not; None: not known
    narrowed: int  # iterations in which the calling thread might use fewer processors than in others
    least_processors: int | None  # that it might use in these; None: in all as many
    median_over_min: float | None  # of the whole's time, in the iterations that times are of
    slow: int  # of these iterations, those that take a fifth longer than the median
    drift: float | None  # last third over first third, minus 1; None: no trend

    @property
    def lost_share(self) -> float:
        """What others took, as far as it is known."""
        return (self.preempted_share or 0.0) + (self.stolen_share or 0.0)

    @property
    def others(self) -> bool:
        """Whether others took too much, of all threads together or of an iteration that times are of; or the control
        group got no more, or the process lost processors meanwhile."""
        return self.limited or self.narrowed > 0 or self.lost_share > LOST_SHARE or self.timed_disturbed > 0

    @property
    def spread(self) -> bool:
        """Whether the median is far from the minimum, or many iterations are far from the median."""
        many = self.slow >= max(FEWEST_SLOW, MANY_SLOW * self.timed)
        return many or (self.median_over_min is not None and self.median_over_min > FAR)


def noise(record: PassRecord, attribution: Attribution, threads: int | None, processors: int) -> Noise:
    """Of one pass; ``threads`` that the workload runs with, ``processors`` that they might use."""
    measured = [iteration for iteration in record.iterations if not iteration.warmup]
    known = [iteration.disturbance for iteration in measured if iteration.disturbance is not None]
    elapsed_ns = sum(one.elapsed_ns for one in known)
    times = _whole_times(attribution)
    iterations, disturbed = attribution.iterations, disturbed_iterations(record)
    counted_left_out = sum(one.layers_counted for one in measured if one.index in iterations.left_out)
    only_timed = any(not one.layers_counted for one in measured)
    of_a_kind = [one.disturbance for one in measured if not (only_timed and one.layers_counted)]
    elapsed = [one.elapsed_ns for one in of_a_kind if one is not None]
    allowed = [one.processors for one in known if one.processors is not None]
    most = max(allowed, default=0)
    fewer = [number for number in allowed if number < most]
    return Noise(
        iterations=len(measured),
        disturbed=len(disturbed),
        disturbed_iterations=disturbed,
        left_out_iterations=iterations.left_out,
        timed=len(iterations.timed),
        timed_left_out=len(iterations.left_out) - counted_left_out if only_timed else counted_left_out,
        timed_disturbed=len(set(iterations.timed) & set(iterations.disturbed)),
        counted=len(iterations.counted),
        counted_left_out=counted_left_out,
        preempted_share=_share([waited_for_others_ns(one) for one in known], elapsed_ns * (threads or 1)),
        among_themselves=_among_themselves(record, known),
        stolen_share=stolen_share(record, threads, processors),
        throttled=record.throttled,
        throttled_ns=record.throttled_ns,
        limited=is_limited(record),
        mean_ns=fmean(elapsed) if elapsed else None,
        narrowed=len(fewer),
        least_processors=min(fewer, default=None),
        median_over_min=_median_over_min(times),
        slow=_slow(times),
        drift=drift(times),
    )


def _among_themselves(record: PassRecord, known: Sequence[Disturbance]) -> bool:
    """Whether threads waited twice as long for processors as other processes had these at all."""
    waited_ns = sum(waited_for_others_ns(one) or 0 for one in known)
    return record.others_ns is not None and waited_ns > BEHIND_OTHERS * record.others_ns


def is_limited(record: PassRecord) -> bool:
    """Whether a pass's control group was stopped at its limit for too much of the time."""
    return (record.throttled_ns or 0) > LOST_SHARE * (record.measured_ns or 0)


def drift(times: Sequence[int]) -> float | None:
    """How much longer the last third of these times is than the first one, by their medians; None without a trend: a
    rank correlation (Spearman) of time and order that chance gives in 1 of 100 cases or more often."""
    number = len(times)
    if number < FEW_FOR_DRIFT:
        return None
    ordered = pl.DataFrame({"time": times}).with_row_index("order")
    correlation = ordered.select(pl.corr("time", "order", method="spearman")).item()
    if correlation is None or not abs(correlation) * (number - 1) ** 0.5 > NORMAL_99:  # the latter: all are alike
        return None
    third = number // 3
    first, last = median(times[:third]), median(times[-third:])
    found = last / first - 1 if first else 0.0
    return found if abs(found) > DRIFT else None


def _whole_times(attribution: Attribution) -> list[int]:
    """Of the iterations that times are of, in their order."""
    timed = pl.col("iteration").is_in(list(attribution.iterations.timed))
    rows = attribution.times.filter(timed & (pl.col("owner") == WHOLE)).sort("iteration")
    return rows["time_ns"].to_list()


def _median_over_min(times: Sequence[int]) -> float | None:
    if len(times) < 2 or min(times) <= 0:
        return None
    return median(times) / min(times)


def _slow(times: Sequence[int]) -> int:
    far_ns = FAR * median(times) if times else 0.0
    return sum(time > far_ns for time in times)


def _share(lost_ns: Sequence[int | None], of_ns: int) -> float | None:
    known = [ns for ns in lost_ns if ns is not None]
    return sum(known) / of_ns if known and of_ns else None


def stolen_share(record: PassRecord, threads: int | None, processors: int) -> float | None:
    """Of the time of the workload's threads, not of all processors: from one that is idle nothing is stolen."""
    if record.stolen_ns is None or not record.measured_ns:
        return None
    return record.stolen_ns / (record.measured_ns * max(1, min(threads or processors, processors)))
