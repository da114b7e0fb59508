"""Weights that are brought into the order of a kernel at each call, though they never change."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, counted, named, percent

LEAST: Final = 0.01
"""Of the processor time: it is work for nothing."""


def find(facts: Facts) -> Finding | None:
    """Where that takes a share worth naming, by what oneDNN itself reports of its reorders."""
    share = facts.weight_reorders
    if share.low < LEAST:
        return None
    known = {one.path for one in facts.layers}.issuperset(facts.weight_layers)
    most = min(share.high, facts.left_in(facts.weight_layers)) if known else share.high
    layers = list(facts.weight_layers[:3])
    return Finding(
        rule="weight_reorders",
        title=f"weights of {counted(len(facts.weight_layers), 'layer', 'layers')} are reordered at each call",
        evidence=f"{percent(share)} of the CPU time in oneDNN's reorders of weights{named(layers)}",
        meaning="the kernel reads weights in blocks, the model holds them in rows: each call copies them again",
        remedy="TORCHINDUCTOR_FREEZING=1 and torch.compile(model): reordered once",
        gain_low=0.0,  # compiled, other kernels may be taken: 38% were won on one machine, 4% on another
        gain_high=most,
        layers=layers,
        remedies=("compile",),
    )
