"""What a sample's call stack stands on in flame graphs: the layer that ran, and the framework's operator in it.

Layers are those of the report (``analysis.samples``), so a layer's width in the graph is its share there. Samples of
which the report has no figure stand beside the layers, on the reason: warm-up, or outside of the iterations.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import polars as pl

from hwprof.analysis.samples import attribute_samples
from hwprof.run.manifest import PassRecord
from hwprof.trace.iteration_slices import unmeasured

ROOTS: Final = ("unmeasured", "stage", "layer", "operator")
"""Columns, the outermost first; null: there is none. ``stage``: only where there is no layer."""

OUTSIDE: Final = "outside of the iterations"
BETWEEN: Final = "between stages"

_NEEDED: Final = ("iteration", "pid", "tid", "kind", "path", "begin_ns", "end_ns")


class FlameRoots:
    """Of the samples of one pass, part by part in the order of their times."""

    def __init__(
        self, outer: pl.DataFrame, layers: pl.DataFrame, record: PassRecord, team: Collection[int] | None = None
    ) -> None:
        """``outer``: the pass's spans of iterations and stages, all of them; ``layers``: the run's table; ``team``: as
        ``attribute_samples`` takes it."""
        self._outer, self._layers, self._team = outer.select(_NEEDED), layers, team
        self._open = self._outer.clear()  # layers and operators that have not ended yet
        self._inner = ["op"] if record.laid_out else ["layer", "op"]
        reasons = [(entry.index, unmeasured(entry)) for entry in record.iterations]
        schema = {"iteration": pl.Int32, "unmeasured": pl.String}
        self._reasons = pl.DataFrame(reasons, schema=schema, orient="row")

    def of(self, samples: pl.DataFrame, spans: pl.DataFrame, until_ns: int) -> pl.DataFrame:
        """The columns ``ROOTS`` of ``samples``, which are sorted by time. ``until_ns``: when the next part begins;
        ``spans``: at least those that begin before that; each is handed in once."""
        inner = spans.filter(pl.col("kind").is_in(self._inner)).select(_NEEDED)
        running = pl.concat([self._open, inner])
        self._open = running.filter(pl.col("end_ns") > until_ns)
        if samples.is_empty():
            return pl.DataFrame(schema=dict.fromkeys(ROOTS, pl.String))
        placed = attribute_samples(samples, pl.concat([self._outer, running]), self._layers, self._team)
        names = placed.select("iteration", pl.col("stage", "layer", "operator").cast(pl.String))
        known = names.join(self._reasons, on="iteration", how="left", maintain_order="left")
        inside = pl.col("iteration").is_not_null()
        stage = pl.coalesce("stage", pl.when(inside).then(pl.lit(BETWEEN)))
        return known.select(
            unmeasured=pl.coalesce("unmeasured", pl.when(~inside).then(pl.lit(OUTSIDE))),
            stage=pl.when(pl.col("layer").is_null()).then(stage),
            layer="layer",
            operator="operator",
        )
