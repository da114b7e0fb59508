"""The framework's operators in the trace pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from hwprof.report.document.part import Part
from hwprof.report.document.raw_files import raw_files
from hwprof.run.roles import Role
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    import polars as pl

    from hwprof.analysis.run_analysis import RunAnalysis


LEAST_SHARE: Final = 0.01
"""Operators with less of a layer's time are not listed with it."""

LEAST_SELF: Final = 0.0001
"""Operators with less of all self time are not listed; most combinations of shapes have less."""


class Operator(msgspec.Struct, kw_only=True, frozen=True):
    """A framework operator with one combination of input shapes."""

    name: str  # as PyTorch has it
    input_shapes: str | None  # of its tensors
    count: int  # calls in all iterations of the pass
    self_ns: int  # without the operators that it calls
    inclusive_ns: int  # with them
    share: float | None  # of the self time of all operators


class LayerOperator(msgspec.Struct, kw_only=True, frozen=True):
    """An operator that a layer calls, or a module's own code; with the operators that it calls in turn."""

    layer: str  # its path
    operator: str | None  # null: outside of operators
    calls: float | None  # in one iteration; null: outside of operators
    time_ns: float  # in one iteration of the trace pass, the mean
    share: float  # of the layer's time in that pass, without the modules that it calls


class OperatorNode(msgspec.Struct, kw_only=True, frozen=True):
    """Calls with the same names above them, in one iteration of the trace pass."""

    node: int  # its place: parents before their children
    parent: int | None  # null: at the top
    depth: int
    kind: Literal["module", "operator"]
    name: str  # a module's class, or an operator
    calls: float
    time_ns: float  # with all below it
    self_ns: float
    allocated_bytes: float | None  # with all below it; null: nobody watched
    self_allocated_bytes: float | None
    shapes: int  # how many combinations of input shapes
    usual_shapes: str | None  # those that most calls have
    share: float | None  # time, of all at the top


class Operators(Part, kw_only=True, frozen=True):
    """The operators, most self time first."""

    coverage: float | None  # the share of the trace pass's time that lies in operators
    others_share: float | None  # of the inference's CPU time: of threads whose operators are not recorded, by samples
    iterations: int | None = None  # that ``rows`` are sums over; null: not known, in documents of before
    combinations: int  # of operator and shapes, also those not listed
    self_ns: int  # of all of them
    rows: list[Operator]  # not those below ``LEAST_SELF``
    by_layer: list[LayerOperator]  # most time first; not those below ``LEAST_SHARE``
    tree: list[OperatorNode] = msgspec.field(default_factory=list)  # not those below a tenth of ``LEAST_SHARE``
    files: tuple[str, ...] = ()  # the tool's own, relative to the run's folder


PART: Final = Operators


def build(analysis: RunAnalysis) -> Operators | Unavailable:
    """From the trace pass."""
    if analysis.operators.table is None:
        return Unavailable("no trace pass was completed", "collect with --passes measure,trace")
    table, covered = analysis.operators.table
    if table.is_empty():
        return Unavailable("the trace pass recorded no operators")
    return Operators(
        coverage=covered,
        others_share=analysis.sampled.others_share() if analysis.sampled is not None else None,
        iterations=len(analysis.traced.attribution.iterations.all) if analysis.traced is not None else None,
        combinations=table.height,
        self_ns=int(table["self_ns"].sum()),
        rows=[Operator(**row) for row in table.iter_rows(named=True) if (row["share"] or 0) >= LEAST_SELF],
        by_layer=[
            LayerOperator(**row)
            for row in analysis.operators.by_layer.iter_rows(named=True)
            if (row["share"] or 0) >= LEAST_SHARE
        ],
        tree=_tree(analysis.operators.tree),
        files=_files(analysis),
    )


def _files(analysis: RunAnalysis) -> tuple[str, ...]:
    traced = analysis.traced
    return tuple(raw_files(analysis.run.path, traced.record, Role.OPERATORS)) if traced is not None else ()


def _tree(table: pl.DataFrame) -> list[OperatorNode]:
    kept: set[int | None] = {None}
    rows = []
    for row in table.iter_rows(named=True):
        if row["parent"] in kept and (row["share"] or 0) >= LEAST_SHARE / 10:
            kept.add(row["node"])
            rows.append(OperatorNode(**row))
    return rows
