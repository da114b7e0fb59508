"""Where the time of the model, of each layer and of each block goes: parts that add up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from hwprof.report.document.kernels import no_samples
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class BudgetPart(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One part of a time: ``compute``, ``layout``, ``page_faults``, ``allocation``, ``waiting``, ``dispatch``,
    ``blocked``, ``preempted`` or ``other``."""

    part: str  # which
    ns: float  # of the elapsed time of an iteration, on average: what the calling thread did
    share: float  # of it; those of a row add up to 1
    share_low: float | None = None  # its 95% interval, by the calling thread's samples; left out: of a block
    share_high: float | None = None  # as share_low
    samples: int = 0  # of the calling thread in it
    threads_ns: float  # of the time of all threads that share the work
    threads_share: float  # of that time


class Budget(msgspec.Struct, kw_only=True, frozen=True):
    """Of the inference, of a layer, of a block with all that is in it, or of layers that are alike."""

    path: str | None  # null: the inference
    elapsed_ns: float  # of an iteration of the pass that was sampled
    samples: int  # of the calling thread
    parts: list[BudgetPart]

    def share(self, part: str) -> float:
        """Of the elapsed time; 0 where there is none."""
        return next((one.share for one in self.parts if one.part == part), 0.0)


class TimeBudget(Part, kw_only=True, frozen=True, rename={"pass_": "pass"}):
    """By the samples and switches of a pass; longest first. ``alike``: all layers together that are alike
    (``layers.alike``), by the path of the first, also where too few samples tell of each."""

    pass_: str
    whole: Budget
    layers: list[Budget]  # that enough samples tell of
    blocks: list[Budget]
    alike: list[Budget]


PART: Final = TimeBudget


def build(analysis: RunAnalysis) -> TimeBudget | Unavailable:
    """From the pass that the samples are of."""
    if analysis.sampled is None:
        return no_samples(analysis)
    from hwprof.analysis.time_budget import nested

    table, of_blocks, of_alike = analysis.time_budget, analysis.block_budgets, analysis.alike_budgets
    if table is None or of_blocks is None or of_alike is None:
        return Unavailable("the thread that calls the model was not sampled")
    whole, *layers = map(_budget, nested(table))
    blocks = sorted(map(_budget, nested(of_blocks)), key=lambda one: -one.elapsed_ns)
    alike = [_budget(row) for row in nested(of_alike)]
    return TimeBudget(pass_=analysis.sampled.record.name, whole=whole, layers=layers, blocks=blocks, alike=alike)


def _budget(row: dict[str, Any]) -> Budget:
    return Budget(**{**row, "parts": [BudgetPart(**part) for part in row["parts"]]})
