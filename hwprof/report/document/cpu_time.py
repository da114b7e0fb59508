"""Which part of the process's CPU time is accounted for by what was counted by thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class CpuTime(Part, frozen=True, kw_only=True):
    """CPU time by owner, as shares of the process's CPU time by the kernel's account; sums over iterations.

    ``accounted_for`` = layers + rest of the inference + rest of the iteration: 1, within its error, where every thread
    was counted throughout.
    """

    iterations: int
    process_cpu_time_ns: float
    layers: float | None  # leaf layers, and the own code of the modules around them; null: not known
    rest_of_inference: float | None  # ``unattributed``
    rest_of_iteration: float | None
    unknown: str | None  # why one of the three is null
    accounted_for: float
    error: float | None  # of ``accounted_for``: what the process took while counters were read; null: runs of before
    tick_ns: int  # of that machine's kernel: in runs of before its account may be as far behind
    resolved: bool  # false: iterations too short, and these shares are chance


PART: Final = CpuTime


def build(analysis: RunAnalysis) -> CpuTime | Unavailable:
    """From the iterations of the main pass that counted layers."""
    from hwprof.analysis.cpu_time import cpu_time

    measured = analysis.measured
    found = None
    if measured is not None:
        found = cpu_time(measured.spans, measured.counts, measured.attribution, analysis.machine.tick_ns)
    if found is None:
        return Unavailable("the CPU time of the process or of its threads was not counted")
    return CpuTime(**vars(found))
