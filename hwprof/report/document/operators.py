"""The framework's operators in the trace pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class Operator(msgspec.Struct, kw_only=True, frozen=True):
    """A framework operator with one combination of input shapes."""

    name: str
    input_shapes: str | None
    count: int
    self_ns: int
    inclusive_ns: int
    share: float | None  # of the self time of all operators


class Operators(Part, kw_only=True, frozen=True):
    """The operators, most self time first."""

    coverage: float | None  # the share of the trace pass's time that lies in operators
    rows: list[Operator]


PART: Final = Operators


def build(analysis: RunAnalysis) -> Operators | Unavailable:
    """From the trace pass."""
    if analysis.operators is None:
        return Unavailable("no trace pass was completed", "hwprof collect --passes measure,trace")
    table, covered = analysis.operators
    if table.is_empty():
        return Unavailable("the trace pass recorded no operators")
    return Operators(coverage=covered, rows=[Operator(**row) for row in table.iter_rows(named=True)])
