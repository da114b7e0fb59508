"""Max pooling in NCHW has no vector instructions in PyTorch; in channels last it has."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, named

LEAST: Final = 0.02
KERNEL: Final = "at::native::cpu_max_pool"
VECTORISED: Final = "channels_last"


def find(facts: Facts) -> Finding | None:
    """Where the kernel without vectors takes a share worth naming."""
    found = [one for one in facts.kernels if one.name.startswith(KERNEL) and VECTORISED not in one.name]
    if not found:
        return None
    most = max(found, key=lambda one: one.share.value)
    if most.at_most.low < LEAST:
        return None
    return Finding(
        rule="scalar_pooling",
        title="max pooling without vector instructions",
        evidence=f"{most.evidence} in {most.name}{named(most.layers)}",
        meaning="PyTorch's kernel for NCHW compares number by number; that for channels last compares whole vectors",
        remedy="model = model.to(memory_format=torch.channels_last), inputs too",
        gain_low=0.0,
        gain_high=facts.of_work(most.at_most).high,
        layers=most.layers,
        remedies=("channels_last", "compile"),
    )
