"""The leaf layers, what no layer owns, and the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.report.document import figures
from hwprof.report.document.counters import Counters, counters
from hwprof.report.document.figures import Figures, Times
from hwprof.report.document.flops import FlopCheck
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    import polars as pl

    from hwprof.analysis import layers as analysis_of_layers
    from hwprof.analysis.run_analysis import RunAnalysis

COLUMNS: Final = (
    "order", "index", "type", "input_shapes", "output_shapes", "more_shapes", "parameters", "macs", "bytes", "share"
)  # fmt: skip


class Layer(Figures, kw_only=True, frozen=True):
    """A leaf layer, or (``own``) what a module around others does itself; sums over the calls of one iteration."""

    order: int | None  # of execution
    index: int | None  # in a model that is one list of modules (model.24.cv2: 24)
    path: str  # of the module, dotted; NAME (own): what it does itself
    own: bool  # whether it is what a module does itself
    type: str | None  # the module's class
    input_shapes: str | None  # of the first call
    output_shapes: str | None  # of the first call
    more_shapes: int | None  # how many other input shapes an iteration has
    parameters: int | None  # weights and biases
    macs: int | None  # multiply-accumulates of an iteration, by arithmetic on shapes
    bytes: int | None  # of inputs, outputs and weights in an iteration, by arithmetic
    calls: float | None  # as measured; null: never called
    time: Times | None
    counting_ratio: float | None  # its time in iterations that count over that in those that only time
    trace_ratio: float | None  # its time in the trace pass over that in the measure pass
    flops: FlopCheck | None  # counted against analytic; of the whole: the layers that have MACs


class Module(msgspec.Struct, kw_only=True, frozen=True):
    """A module with layers within it: what its own calls took in one iteration, what is between its layers included."""

    path: str
    type: str | None
    parameters: int | None  # these two: with everything below it
    macs: int | None
    calls: float | None  # as measured; null: never called
    time: Times | None
    share: float | None  # of the inference: what its rows have together


class Layers(Part, kw_only=True, frozen=True):
    """The layers, and the own code of the modules around them, in order of execution; with ``unattributed`` they add up
    to ``whole``."""

    rows: list[Layer]
    unattributed: Layer | None
    whole: Layer | None
    counters: Counters
    modules: list[Module]  # those around the layers, by their own spans
    alike: list[list[str]]  # paths of those that do the same and take about as long, the longest first
    irregular: list[str]  # layers that some iterations call more often than others, or not at all
    uncounted_in: str | None = None  # the pass that the rows' uncounted_ns is of; null: none has any
    beside: tuple[str, ...] = ()  # own code that worked beside threads that it began, of an unknown part: no rates

    @property
    def every(self) -> list[Layer]:
        """The rows, and the two below them where there are such."""
        return [*self.rows, *(one for one in (self.unattributed, self.whole) if one is not None)]


PART: Final = Layers


def build(analysis: RunAnalysis) -> Layers | Unavailable:
    """From the main pass."""
    if analysis.figures is None or analysis.counting is None:
        return Unavailable("no pass was completed")
    checks = {path: FlopCheck(**vars(check)) for path, check in analysis.flop_checks.items()}
    found = of_figures(analysis.figures.layers, analysis.counting, analysis.tracing, checks)
    found = msgspec.structs.replace(found, modules=_modules(analysis.module_times), alike=analysis.alike)
    of = analysis.counted.record if analysis.counted is not None else analysis.main
    if of is None or all(row.uncounted_ns is None for row in found.every):
        return found
    return msgspec.structs.replace(found, uncounted_in=of.name)


def _modules(found: pl.DataFrame | None) -> list[Module]:
    return [
        Module(
            path=row["owner"],
            type=row["type"],
            parameters=row["parameters"],
            macs=row["macs"],
            calls=row["calls_per_iteration"],
            time=figures.times(row, "time", "iterations"),
            share=row["share"],
        )
        for row in (found.iter_rows(named=True) if found is not None else ())
    ]


def of_figures(
    found: analysis_of_layers.Figures,
    counting: pl.DataFrame,
    tracing: pl.DataFrame | None,
    checks: dict[str, FlopCheck],
) -> Layers:
    """``counting`` and ``tracing`` are ratios of times by owner."""
    common = figures.by_owner(found)
    counting_ratios, trace_ratios = _ratios(counting), _ratios(tracing)
    rows = {
        row["owner"]: Layer(
            path=row["owner"],
            own=row["leaf"] is False,
            **{name: row[name] for name in COLUMNS},
            calls=row["calls_per_iteration"],
            time=figures.times(row, "time", "iterations"),
            counting_ratio=counting_ratios.get(row["owner"]),
            trace_ratio=trace_ratios.get(row["owner"]),
            flops=checks.get(row["owner"]),
            **common[row["owner"]],
        )
        for row in found.rows.iter_rows(named=True)
    }
    unattributed, whole = rows.pop(UNATTRIBUTED, None), rows.pop(WHOLE, None)
    last = [one.path for one in (unattributed, whole) if one is not None]
    return Layers(
        rows=list(rows.values()),
        unattributed=unattributed,
        whole=whole,
        counters=counters(found.counters, [*rows, *last]),
        modules=[],
        alike=[],
        irregular=list(found.irregular),
        beside=found.beside,
    )


def _ratios(table: pl.DataFrame | None) -> dict[str, float]:
    return dict(table.select("owner", "ratio").iter_rows()) if table is not None else {}
