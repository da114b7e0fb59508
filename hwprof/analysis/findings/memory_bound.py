"""Layers that memory's bandwidth bounds."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, counted, named

LEAST: Final = 0.05
"""Of the inference's time, all of these layers together."""

BANDWIDTH: Final = " bandwidth"
FUSES: Final = "torch.compile(model) fuses them with their neighbours"
HALF: Final = "bfloat16 halves the bytes"


def find(facts: Facts) -> Finding | None:
    """Where they take a share worth naming."""
    layers = [one for one in facts.layers if one.bound is not None and one.bound.endswith(BANDWIDTH)]
    share = sum(one.of_whole for one in layers)
    if share < LEAST:
        return None
    ways = [*([] if facts.compiled else [FUSES]), *([HALF] if facts.bfloat16 else [])]
    ordered = [one.path for one in sorted(layers, key=lambda one: -one.of_whole)]
    return Finding(
        rule="memory_bound",
        title=f"{counted(len(layers), 'layer is', 'layers are')} bound by memory's bandwidth",
        evidence=f"{share:.1%} of the time{named(ordered[:3])}",
        meaning="they wait for bytes, not for arithmetic: fewer bytes help, more threads do not",
        remedy="; ".join(ways),
        gain_low=0.0,
        gain_high=share / 2,
        remedies=("compile", "bfloat16") if facts.bfloat16 else ("compile",),
        by_hand="operators in place (inplace=True, add_), or one for several",
        layers=ordered,
    )
