"""Python's own code within the inference: loops and arithmetic that the interpreter does."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, Share, named, percent
from hwprof.analysis.findings.garbage_collection import collecting

LEAST: Final = 0.1
"""Of the time, beside what calling the layers takes."""

MOSTLY: Final = 0.5
"""Of the time between kernels: with less of it, operators are what it is lost to (``dispatch``)."""


def find(facts: Facts) -> Finding | None:
    """Where it takes a share worth naming, and most of the time between kernels."""
    gc = collecting(facts)  # the interpreter's too, and a cause of its own
    calls = facts.python_of_calls / facts.left  # of many tiny layers: what is lost to these is ``dispatch``
    share = Share(*(max(0.0, one - gc.value - calls) for one in facts.of_left(facts.python)))
    if share.low < LEAST or share.value < MOSTLY * facts.part("dispatch").value:
        return None
    layers = facts.most_in("dispatch")
    return Finding(
        rule="python_code",
        title="Python computes within the inference",
        evidence=f"{percent(share)} {facts.of_time} in the interpreter{named(layers)} (hwprof report --python)",
        meaning="the interpreter takes some 50 ns a step, on one thread, and the other processors rest meanwhile",
        remedy="operators on whole tensors in place of loops over numbers; torch.compile(model)",
        gain_low=0.0,
        gain_high=share.high,
        layers=layers,
        remedies=("compile",),
        by_hand="operators on whole tensors in place of loops over numbers",
    )
