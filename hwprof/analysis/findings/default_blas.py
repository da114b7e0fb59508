"""MKL's default kernels, which it falls back to on processors of others."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, Share, percent

LEAST: Final = 0.02
DEFAULT: Final = "mkl_blas_def_"
INTEL: Final = "GenuineIntel"
LESS_PRECISE: Final = "bfloat16 where it is precise enough (oneDNN's kernels), or "
BFLOAT16_OF_FP32: Final = 2
"""Products of bfloat16 in an instruction (VDPBF16PS) for each of FP32: at its peak they take half of the time."""

OTHERWISE: Final = "a PyTorch that was built with OpenBLAS"


def find(facts: Facts) -> Finding | None:
    """Where they lose a share worth naming against the processor's peak, which old processors reach with them too; on
    Intel's own they are no fallback. Where nobody measured that on a quiet machine, nothing is known of a loss."""
    if facts.gemm_of_roof is None:
        return None
    found = [one for one in facts.kernels if one.name.startswith(DEFAULT)]
    share = Share(*(min(1.0, sum(one.share[place] for one in found)) for place in range(3)))
    most = min(facts.of_work(share).high, sum(one.within for one in found))
    lost = 1 - min(1.0, facts.gemm_of_roof)
    if share.low * lost < LEAST or facts.vendor == INTEL:
        return None
    return Finding(
        rule="default_blas",
        title="matrix products in MKL's default kernels",
        evidence=f"{percent(share)} of the CPU time in {DEFAULT}…, {facts.gemm_of_roof:.0%} of the FP32 peak in a"
        " large product",
        meaning="on processors that are not Intel's MKL takes its default kernels, not those of the vectors' size",
        remedy=f"{LESS_PRECISE if facts.bfloat16 else ''}{OTHERWISE}",
        gain_low=0.0,
        gain_high=most * (1 - min(1.0, facts.gemm_of_roof) / BFLOAT16_OF_FP32 if facts.bfloat16 else lost),
        remedies=("bfloat16",) if facts.bfloat16 else (),
    )
