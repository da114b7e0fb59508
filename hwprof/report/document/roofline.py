"""How near the model, and each layer, comes to what this machine can do at most, and what bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis import kernel_roofline, run_roofline
    from hwprof.analysis.run_analysis import RunAnalysis


class UnderRoofs(msgspec.Struct, kw_only=True, frozen=True):
    """Of a layer, or of a module's own code; ``path`` null: of the inference."""

    path: str | None  # of the layer; null: the inference
    time_ns: float | None  # median of an iteration
    share: float | None  # of the inference
    gflops: float | None  # counted, else analytic; null: no operations that anybody counts
    gflops_from: str | None  # "counted", "analytic"
    gbytes: dict[str, float]  # GB/s by level
    bytes_from: dict[str, str]  # measured, simulated, instrumented, modelled: by level
    intensity: dict[str, float]  # operational: FLOP/byte, by level
    roof: str | None  # the nearest one: "FP32", "BF16", or a level
    share_of_roof: float | None  # how near it comes to that roof
    attainable_gflops: float | None  # what that roof allows at its operational intensity
    bound: str  # what bounds it: a level, compute, latency, waiting, overhead, …
    evidence: str  # what that follows from
    confidence: str  # high, medium, low


class CodeUnderRoofs(msgspec.Struct, kw_only=True, frozen=True):
    """Of a sampled kernel in a layer or in all leaf layers (those of its CPI), or of a primitive: what it attains while
    it runs."""

    gflops: float | None  # null: nobody counted its operations
    gflops_from: str | None  # "counted" (instrumented), "analytic" (the primitive's problem), "layer"
    threads: float  # on which it runs: as many equal ones as its CPU time on them is worth
    gbytes: dict[str, float]  # GB/s by level
    bytes_from: dict[str, str]  # measured, simulated, instrumented, modelled: by level
    intensity: dict[str, float]  # operational: FLOP/byte, by level
    roof: str | None  # the nearest one of so many threads
    share_of_roof: float | None  # how near it comes to that roof
    bound: str  # what bounds it
    evidence: str
    confidence: str  # high, medium, low


class Roofline(Part, kw_only=True, frozen=True):
    """By the peaks that ``hwprof peaks`` measured, for as many threads as the workload has."""

    threads: int
    measured: str  # when, ISO 8601
    fp32_gflops: float
    level_gbytes: dict[str, float]
    gemm_gflops: float | None
    dram_latency_ns: float | None  # of a load, by one thread
    analytic_gflops: float | None  # of the inference: 2 x MACs over its time
    others_share: float | None = None  # of the processors, while the peaks were measured: they are too low then
    share_of_gemm: float | None  # of these
    images_per_s: float | None
    whole: UnderRoofs | None
    rows: list[UnderRoofs]  # longest first


PART: Final = Roofline


def build(analysis: RunAnalysis) -> Roofline | Unavailable:
    """From the main pass, the samples' budget, and the run's peaks."""
    found = analysis.roofline
    if isinstance(found, Unavailable):
        return found
    whole = _under(found.whole) if found.whole is not None else None
    return Roofline(**{**found._asdict(), "whole": whole, "rows": [_under(one) for one in found.rows]})


def of_code(found: kernel_roofline.CodeUnderRoofs | None) -> CodeUnderRoofs | None:
    """What is known of a kernel or primitive."""
    return CodeUnderRoofs(**found._asdict()) if found is not None else None


def _under(found: run_roofline.UnderRoofs) -> UnderRoofs:
    return UnderRoofs(**found._asdict())
