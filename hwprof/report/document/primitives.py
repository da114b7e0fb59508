"""oneDNN's primitives of a run, from its tables and its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from hwprof.analysis import primitives as analysis
from hwprof.analysis.implementations import knowledge, vector_bits
from hwprof.analysis.reorders import REORDER
from hwprof.report.document.primitives_schema import Bypass, Fallback, Primitive, Primitives, Reorders
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import CollectorRecord, PassRecord

SUMS: Final = ("executions", "time_ns")


@dataclass(frozen=True)
class Reported:
    """The pass in which oneDNN reported, and what that tells."""

    record: PassRecord
    detail: dict[str, Any]  # the collector's
    error_ns: int  # of its clock
    found: analysis.Primitives


def build(run: RunDirectory) -> Primitives | None:
    """The document's part; None where oneDNN did not report."""
    reported = find(run)
    if reported is None:
        return None
    found, detail = reported.found, reported.detail
    not_joined = found.not_joined()
    return Primitives(
        pass_name=reported.record.name,
        version=detail.get("version"),
        instruction_set=detail.get("instruction_set"),
        vector_bits=vector_bits(detail.get("machine_flags", ())),
        iterations=found.iterations,
        whole_ns=found.whole_ns,
        executed=found.calls.height,
        joined=found.calls.height - sum(not_joined.values()),
        not_joined=not_joined,
        clock_error_ns=reported.error_ns,
        margin_ns=found.margin_ns,
        by_layer=[Primitive(**row) for row in found.by_layer.rename({"path": "layer"}).iter_rows(named=True)],
        fallbacks=[Fallback(**row) for row in _fallbacks(found)],
        bypasses=[Bypass(**row) for row in _bypasses(found)],
        reorders=[Reorders(**row) for row in _reorders(found)],
    )


def find(run: RunDirectory) -> Reported | None:
    """The first completed pass in which oneDNN reported; None where it did in none. The collector's record says why, as
    for every collector."""
    for record in run.completed_passes():
        collector = _collector(record)
        clock = next((clock for clock in record.clocks if clock.name == analysis.CLOCK), None)
        if collector is None or clock is None:
            continue
        of_pass = pl.col("pass") == record.name
        found = analysis.analyse(
            run.read("primitives").filter(of_pass),
            run.scan("spans").filter(of_pass).collect(),
            run.read("layers"),
            clock.error_ns,
            collector.detail.get("machine_flags", ()),
            collector.detail.get("restricted_to", collector.detail.get("held_to")),  # held_to: earlier runs
        )
        return Reported(record, collector.detail, clock.error_ns, found)
    return None


def _collector(record: PassRecord) -> CollectorRecord | None:
    return next((one for one in record.collectors if one.name == analysis.COLLECTOR and one.state == "ran"), None)


def _fallbacks(found: analysis.Primitives) -> Iterator[dict[str, Any]]:
    keys = ["kind", "primitive", "implementation", "reason", "remedy"]
    return _summed(found.warnings.rename({"fallback": "kind"}), keys, SUMS, found.whole_ns)


def _bypasses(found: analysis.Primitives) -> Iterator[dict[str, Any]]:
    return _summed(found.without, ["type", "reason", "remedy"], ("calls", "time_ns"), found.whole_ns)


def _reorders(found: analysis.Primitives) -> Iterator[dict[str, Any]]:
    remedies = knowledge().reorder
    changes = found.by_layer.filter(pl.col("primitive") == REORDER).drop("remedy")
    for row in _summed(changes, ["tensor"], SUMS, found.whole_ns):
        yield {**row, "layers": len(row["layers"]), "remedy": remedies.get(row["tensor"])}


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
