"""The figures of layers, layer types and stages: a pass's own counts, joined with what others counted of its work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from hwprof.analysis import irregular, layers, missing, stages, uncore
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.instrumented_counts import Counted, further_operands, with_counters
from hwprof.analysis.layer_types import layer_type_table
from hwprof.analysis.layers import Figures
from hwprof.analysis.loaded_pass import LoadedPass
from hwprof.analysis.owners import INFERENCE, WHOLE
from hwprof.run.manifest import MetricDefinition

if TYPE_CHECKING:  # it needs numpy, which a run without samples does not
    from hwprof.analysis.sampled_cycles import SampledCycles


@dataclass(frozen=True)
class FigureTables:
    """The figures of a pass: its own counts, and those that are joined with its times."""

    layers: Figures
    layer_types: Figures
    stages: Figures

    def without_cpu_usage(self, definitions: Iterable[MetricDefinition]) -> FigureTables:
        """CPU time per wall time is no figure where much of the CPU time is in no count."""
        names = {metric.name for metric in definitions if missing.is_cpu_usage(metric)}
        return FigureTables(*(_without(table, names) for table in (self.layers, self.layer_types, self.stages)))


@dataclass(frozen=True)
class Further:
    """What others counted of a pass's work: operands of metrics."""

    dram: uncore.Traffic
    instrumented: Counted | None
    """The counts of the instrumented pass; None where there is none that did the same work."""
    cycles: SampledCycles | None
    """Cycles by samples; None where they were counted, or nobody sampled."""


def figure_tables(
    pass_: LoadedPass,
    modules: pl.DataFrame,
    definitions: tuple[MetricDefinition, ...],
    threads: int | None,
    further: Further,
) -> FigureTables:
    """``modules`` is the table ``layers``; ``threads``, how many the workload has, where that is known."""
    dram, own, cycles = further.dram, further.instrumented, further.cycles
    of_layers, of_types, of_stages = (own.layers, own.layer_types, own.stages) if own is not None else (None,) * 3
    attribution = pass_.attribution
    if own is not None:
        attribution = replace(attribution, calls=irregular.of_both(attribution.calls, own.calls))
    operands = further_operands(dram.layers, of_layers, cycles.layers if cycles is not None else None)
    by_layer = layers.layer_table(modules, attribution, definitions, threads, operands)
    operands = further_operands(dram.layer_types, of_types, cycles.layer_types if cycles is not None else None)
    by_type = layer_type_table(modules, attribution, definitions, threads, operands)
    by_stage = stages.stage_table(
        pass_.spans,
        pass_.counts,
        pass_.record,
        pass_.attribution.iterations,
        definitions,
        threads,
        further_operands(dram.stages, of_stages, cycles.stages if cycles is not None else None),
        [INFERENCE] if by_layer.irregular else [],
        _of_inference(pass_.attribution),
    )
    tables = ((by_layer, of_layers), (by_type, of_types), (by_stage, of_stages))
    return FigureTables(*(with_counters(figures, counters) for figures, counters in tables))


def _of_inference(attribution: Attribution) -> pl.DataFrame:
    """What the whole lacks for the callers of its layers, as the stage's that it is."""
    lacking = attribution.uncounted_callers.filter(owner=WHOLE if attribution.whole == INFERENCE else "")
    return lacking.with_columns(owner=pl.lit(INFERENCE))


def _without(figures: Figures, metrics: set[str]) -> Figures:
    lacking = [name for name in figures.metrics.columns if name.partition("@")[0] in metrics]
    nothing = [pl.lit(None, figures.metrics.schema[name]).alias(name) for name in lacking]
    return replace(figures, metrics=figures.metrics.with_columns(nothing))
