"""MKL's default kernels, which it falls back to on processors of others."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, Share, percent

LEAST: Final = 0.02
DEFAULT: Final = "mkl_blas_def_"
INTEL: Final = "GenuineIntel"


def find(facts: Facts) -> Finding | None:
    """Where they take a share worth naming; on Intel's own processors they are no fallback."""
    found = [one for one in facts.kernels if one.name.startswith(DEFAULT)]
    share = Share(*(min(1.0, sum(one.share[place] for one in found)) for place in range(3)))
    if share.low < LEAST or facts.vendor == INTEL:
        return None
    return Finding(
        rule="default_blas",
        title="matrix products in MKL's default kernels",
        evidence=f"{percent(share)} of the CPU time in {DEFAULT}…",
        meaning="MKL takes its oldest kernels on processors that are not Intel's; oneDNN's use all of the vectors",
        remedy="bfloat16 where it is precise enough, torch.compile(model), or a PyTorch that was built with OpenBLAS",
        gain_low=0.0,
        gain_high=min(1.0, share.high),
        remedies=("bfloat16", "compile"),
    )
