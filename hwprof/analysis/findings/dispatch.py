"""Time between kernels: Python and the framework, where operators are small."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings import python_code
from hwprof.analysis.findings.facts import Facts, Finding, at_most, named, percent

LEAST: Final = 0.15


def find(facts: Facts) -> Finding | None:
    """Where it takes a share worth naming, and is not mostly Python that computes (``python_code``)."""
    share = facts.part("dispatch")
    if share.low < LEAST or python_code.find(facts) is not None:
        return None
    most = max(share.high, facts.time_at_most([one.path for one in facts.layers], "dispatch"))
    layers = facts.most_in("dispatch")
    return Finding(
        rule="dispatch",
        title="operators are too small for what calling them costs",
        evidence=f"{percent(share)} {facts.of_time}{named(layers)}{at_most(most, share.high)}",
        meaning="Python and the framework take longer to call a kernel than it runs (profilers add to it)",
        remedy="torch.compile(model), or a larger batch",
        gain_low=0.0,
        gain_high=most,
        layers=layers,
        remedies=("compile",),
        by_hand="a larger batch, or fewer and larger operators",
    )
