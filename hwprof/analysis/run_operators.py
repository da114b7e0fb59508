"""What several sections of a report need of the framework's operators, in the trace pass."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from hwprof.analysis import layer_operators, operator_tree, operators

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class OperatorsAnalysis:
    """Made once for a run."""

    def __init__(self, analysis: RunAnalysis) -> None:
        self._analysis = analysis

    @cached_property
    def table(self) -> tuple[pl.DataFrame, float | None] | None:
        """By name and shapes, as ``operators.operator_table``, and which share of the time they cover."""
        traced = self._analysis.traced
        if traced is None:
            return None
        iterations = traced.attribution.iterations.all
        calls = operators.operator_calls(traced.spans, iterations)
        return operators.operator_table(calls), operators.coverage(calls, traced.spans, iterations)

    @cached_property
    def by_layer(self) -> pl.DataFrame:
        """Those that each layer calls, as ``layer_operators.layer_operators`` makes it."""
        traced = self._analysis.traced
        if traced is None:
            return pl.DataFrame(schema=layer_operators.SCHEMA)
        return layer_operators.layer_operators(
            traced.spans, self._analysis.modules, traced.attribution.iterations.timed
        )

    @cached_property
    def tree(self) -> pl.DataFrame:
        """What calls what, as ``operator_tree.operator_tree`` makes it."""
        traced = self._analysis.traced
        if traced is None:
            return pl.DataFrame(schema=operator_tree.SCHEMA)
        return operator_tree.operator_tree(
            traced.spans,
            self._analysis.modules,
            self._analysis.of_pass("allocations", traced.record),
            traced.attribution.iterations.timed,
            traced.record.main_tid,
        )
