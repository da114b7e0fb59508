"""How many images, or frames, a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class Throughput(Part, kw_only=True, frozen=True):
    """Times are medians over the timed iterations; rates are images over these, per second."""

    images: int  # of an iteration: frames of a video
    inference_ns: float  # all calls of the model in it
    iteration_ns: float
    inference_per_s: float
    end_to_end_per_s: float  # from reading to saving


PART: Final = Throughput


def build(analysis: RunAnalysis) -> Throughput | Unavailable:
    """From the main pass."""
    found = analysis.throughput
    return found if isinstance(found, Unavailable) else Throughput(**found._asdict())
