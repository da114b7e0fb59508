"""What measuring did to the measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    import polars as pl

    from hwprof.analysis.run_analysis import RunAnalysis


class Effect(msgspec.Struct, kw_only=True, frozen=True):
    """How much slower the observed was than the base, in undisturbed iterations: of the whole inference, and the
    layers' quartiles."""

    base_ns: float
    observed_ns: float
    base_iterations: int
    observed_iterations: int
    ratio: float
    error: float | None  # half of the ratio's 95% interval; null: a side has one iteration
    distinguishable: bool  # from noise: slower by more than the error
    layers_p25: float | None
    layers_median: float | None
    layers_p75: float | None


class Overhead(Part, kw_only=True, frozen=True):
    """``watching``: iterations that time every layer against bare ones. ``counting``: iterations that count layers
    against those that only time them. ``trace``: the trace pass against the measure pass. Null where the run has only
    one side; where it has both, and still cannot tell, ``missing_…`` has the reason."""

    watching: Effect | None = None
    counting: Effect | None
    trace: Effect | None
    missing_watching: Unavailable | None = None
    missing_counting: Unavailable | None
    missing_trace: Unavailable | None


PART: Final = Overhead


def build(analysis: RunAnalysis) -> Overhead | Unavailable:
    """From the main pass and the trace pass."""
    found = Overhead(
        watching=effect_of(analysis.watching),
        missing_watching=analysis.why_no_watching,
        counting=effect_of(analysis.counting),
        trace=effect_of(analysis.tracing),
        missing_counting=analysis.why_no_counting,
        missing_trace=analysis.why_no_tracing,
    )
    if not any(msgspec.structs.astuple(found)):
        return Unavailable("nothing was measured in two ways")
    return found


def effect_of(ratios: pl.DataFrame | None) -> Effect | None:
    """Of a table as ``analysis.overhead`` makes them; None where it has no row of the whole."""
    from hwprof.analysis.overhead import of_whole, spread

    row = of_whole(ratios) if ratios is not None else None
    if row is None or ratios is None:
        return None
    low, middle, high = spread(ratios) or (None, None, None)
    return Effect(**row, layers_p25=low, layers_median=middle, layers_p75=high)
