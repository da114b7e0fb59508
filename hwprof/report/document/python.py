"""Python's functions, by looks at the stacks of all threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


FEW_LOOKS: Final = 10
"""Half of a function's time, or twice of it, may be chance."""


class PythonFunction(msgspec.Struct, kw_only=True, frozen=True):
    """What a function took in a stage, in one iteration: the mean of those that times are of."""

    stage: str
    thread: Literal["main", "other"]  # main: that calls the model; other: all others together
    function: str
    file: str
    looks: float | None  # as many as its self time stands for, in all iterations
    self_ns: float  # without the functions that it calls; what native code does for it is its own
    inclusive_ns: float
    share: float | None  # self time of the stage's time


class Python(Part, kw_only=True, frozen=True, rename={"pass_": "pass"}):
    """By stage, thread and function, most self time first."""

    pass_: str
    rate_hz: float | None  # how often somebody looked
    few_looks: int  # what fewer looks tell of is left to chance
    functions: list[PythonFunction]


PART: Final = Python


def build(analysis: RunAnalysis) -> Python | Unavailable:
    """From the pass in which somebody looked."""
    from hwprof.analysis.python_functions import rate_hz

    found = analysis.python_functions
    if found is None:
        return Unavailable("nobody looked at Python's stacks", "hwprof collect --pyspy-passes trace")
    record, table = found
    return Python(
        pass_=record.name,
        rate_hz=rate_hz(record),
        few_looks=FEW_LOOKS,
        functions=[PythonFunction(**row) for row in table.iter_rows(named=True)],
    )
