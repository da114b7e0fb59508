"""The pass in which oneDNN reported, and what its primitives sum up to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hwprof.analysis import primitives
from hwprof.analysis.implementations import knowledge
from hwprof.analysis.reorders import REORDER
from hwprof.run.details import PrimitivesDetail
from hwprof.run.manifest import PassRecord

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis

SUMS: Final = ("executions", "time_ns")


@dataclass(frozen=True)
class Reported:
    """The pass in which oneDNN reported, and what that tells."""

    record: PassRecord
    detail: PrimitivesDetail
    error_ns: int  # of its clock
    found: primitives.Primitives

    def fallbacks(self) -> Iterator[dict[str, Any]]:
        """The implementations that something better could stand for, most time first."""
        keys = ["kind", "primitive", "implementation", "reason", "remedy"]
        return _summed(self.found.warnings.rename({"fallback": "kind"}), keys, SUMS, self.found.whole_ns)

    def bypasses(self) -> Iterator[dict[str, Any]]:
        """The types of layers that executed no primitive in some of their calls, most time first."""
        return _summed(self.found.without, ["type", "reason", "remedy"], ("calls", "time_ns"), self.found.whole_ns)

    def reorders(self) -> Iterator[dict[str, Any]]:
        """Changes of layout by the tensor that was brought into another one, most time first."""
        remedies = knowledge().reorder
        changes = self.found.by_layer.filter(pl.col("primitive") == REORDER).drop("remedy")
        for row in _summed(changes, ["tensor"], SUMS, self.found.whole_ns):
            yield {**row, "layers": len(row["layers"]), "remedy": remedies.get(row["tensor"])}


def reported_primitives(analysis: RunAnalysis) -> Reported | None:
    """The first completed pass in which oneDNN reported; None where it did in none. The collector's record says why, as
    for every collector."""
    for record in analysis.run.completed_passes():
        detail = _detail(record)
        clock = next((clock for clock in record.clocks if clock.name == primitives.CLOCK), None)
        if detail is None or clock is None:
            continue
        found = primitives.analyse(
            analysis.of_pass("primitives", record),
            analysis.of_pass("spans", record),
            analysis.modules,
            clock.error_ns,
            detail.machine_flags,
            detail.restricted_to,
        )
        return Reported(record, detail, clock.error_ns, found)
    return None


def _detail(record: PassRecord) -> PrimitivesDetail | None:
    found = (collector.detail_as(PrimitivesDetail) for collector in record.collectors if collector.state == "ran")
    return next((detail for detail in found if detail is not None), None)


def _summed(rows: pl.DataFrame, keys: list[str], sums: tuple[str, ...], whole_ns: int) -> Iterator[dict[str, Any]]:
    """Groups of rows, most time first: their sums, their layers and their share of the whole."""
    by_layer = rows.group_by(*keys, "path").agg(pl.col(sums).sum()).sort("time_ns", "path", descending=[True, False])
    return (
        by_layer.group_by(keys, maintain_order=True)
        .agg(pl.col("path").alias("layers"), pl.col(sums).sum())
        .with_columns(share=pl.col("time_ns") / pl.lit(whole_ns or None, dtype=pl.Float64))
        .sort("time_ns", *keys, descending=[True, *[False] * len(keys)])
        .iter_rows(named=True)
    )
