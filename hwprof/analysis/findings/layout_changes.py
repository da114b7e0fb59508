"""Layouts that are changed around convolutions: oneDNN computes in blocks, the model passes NCHW."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, named, percent

LEAST: Final = 0.03
WORTH_A_WORD: Final = 0.005


def find(facts: Facts) -> Finding | None:
    """Where they take a share worth naming, of a model that convolves."""
    share = facts.part("layout")
    if share.low < LEAST or not facts.convolutions:
        return None
    layers = facts.most_in("layout")
    copied = [one.path for one in facts.layers if one.parts.get("layout", 0.0) >= LEAST]
    new = min(facts.new_memory(copied), max(0.0, _time_of_layers(facts) - share.high))
    memory = f"; new memory for the copies {new:.1%} at most" if new >= WORTH_A_WORD else ""
    return Finding(
        rule="layout_changes",
        title=f"layout changes around {facts.convolutions} convolutions",
        evidence=f"{percent(share)} {facts.of_time}{named(layers)}{memory}",
        meaning="each convolution copies its input into the order that its kernel reads, and often its output back,"
        " each time into new memory",
        remedy="model = model.to(memory_format=torch.channels_last), inputs too",
        gain_low=0.0,
        gain_high=min(1.0, share.high + new),
        remedies=("channels_last", "compile"),
        layers=layers,
        shared={"fresh_memory": new},
    )


def _time_of_layers(facts: Facts) -> float:
    """All that others left of the layers in which samples met layout changes, and what of these is in no layer: changes
    and the memory for them take no longer together."""
    met = [one.path for one in facts.layers if one.parts.get("layout", 0.0) > 0]
    in_none = max(0.0, facts.part("layout").value - facts.time_of(met, "layout"))
    return min(1.0, facts.left_in(met) + in_none)
