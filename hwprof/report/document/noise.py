"""How far the times are to be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class Noise(Part, kw_only=True, frozen=True):
    """What others did to the iterations after warm-up, and how much these vary. Shares are of the time of the threads
    that the workload runs with. Provenance: measured (the kernel's own accounts)."""

    iterations: int
    disturbed: int  # by their own evidence: preempted or stolen for more than 5% of their time
    disturbed_iterations: tuple[int, ...]  # their numbers, as in the trace and the tables
    left_out_iterations: tuple[int, ...]  # of those, the ones that no median is of
    timed: int  # that times are of
    timed_left_out: int  # of their kind (only timed, if there are such): disturbed, while enough others remain
    timed_disturbed: int  # of those that times are of: too few others remain
    counted: int  # that counts at layer edges are of
    counted_left_out: int  # of their kind
    preempted_share: float | None  # ready to run, and without a processor, in iterations with preemptions
    among_themselves: bool = (
        False  # most of that is behind other threads of the process, which has more than processors
    )
    stolen_share: float | None  # while the hypervisor ran something else
    throttled: int | None  # how often the control group (container) was stopped at its CPU limit; null: it has none
    throttled_ns: int | None  # for how long in all, summed over processors
    limited: bool  # that took more than 5%
    mean_ns: float | None = None  # of an iteration whose layers are timed, by all of them, disturbed or not
    narrowed: int = 0  # iterations in which the calling thread might use fewer processors than in others
    least_processors: int | None = None  # that it might use in these; null: in all as many
    median_over_min: float | None  # of the time of the inference
    slow: int = 0  # of the iterations that times are of, those that take a fifth longer than the median
    drift: float | None  # last third over first third, minus 1; null: no trend
    precision: float | None = None  # of the layer known worst, half of its median's 95% interval; null: not known
    precision_wanted: float | None = None  # null: it was not asked for
    precision_layer: str | None = None  # the one that is known worst
    others: bool  # took more than 5%, of all threads' time or of an iteration that times are of; limited, narrowed
    spread: bool  # the median is far from the minimum, or a fifth of the iterations from the median


PART: Final = Noise


def build(analysis: RunAnalysis) -> Noise | Unavailable:
    """Of the main pass."""
    from hwprof.analysis.noise import noise
    from hwprof.analysis.precision import known_worst

    measured = analysis.measured
    if measured is None:
        return Unavailable("no pass was completed")
    found = noise(measured.record, measured.attribution, analysis.threads, analysis.machine.usable_processors)
    wanted = measured.record.precision
    known = (known_worst(analysis.figures.layers.rows) if analysis.figures is not None else None) or wanted
    return Noise(
        **vars(found),
        precision=known.error if known is not None else None,
        precision_wanted=wanted.wanted if wanted is not None else None,
        precision_layer=known.layer if known is not None else None,
        others=found.others,
        spread=found.spread,
    )
