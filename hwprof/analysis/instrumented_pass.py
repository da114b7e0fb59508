"""What one instrumented pass counted: its layers, with the times of the same work uninstrumented, and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from hwprof.analysis import instrumented, layers, overhead, summary
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.instrumented_counts import Counted
from hwprof.analysis.kernel_counts import OPENMP, KernelCounts
from hwprof.run.manifest import PassRecord

PER_LAYER: Final = 5
LEAST_OF_LAYER: Final = 0.05
"""Kernels of a layer that are listed: so many at most, none with less of its instructions but for the first; the table
``kernel_counts`` has all."""

INSTRUCTIONS: Final = ".instructions"


@dataclass(frozen=True)
class InstrumentedPass:
    """A pass's figures, and what it counted of kernels in layers, as ``KernelCounts`` has it: of every kernel the
    instructions, of the ``listed`` ones everything where they are listed, as texts; ``kernels`` has the rest."""

    record: PassRecord
    not_comparable: str | None  # why there are no times
    notes: list[str]
    figures: layers.Figures
    events: list[dict[str, Any]]  # as ``summary.events``
    counting: pl.DataFrame  # as ``overhead.counting_overhead``
    instructions: pl.DataFrame
    largest: pl.DataFrame
    of_listed: pl.DataFrame
    kernels: KernelCounts
    calls: pl.DataFrame  # as ``Attribution`` has them

    def listed(self) -> list[dict[str, Any]]:
        """The kernels of the whole that are not small, and the largest of every layer, ranked by instructions: the
        columns of ``instrumented.KERNEL_KEYS``, ``instructions``, ``share``, and by event and metric ``counters`` and
        ``metrics`` that are known."""
        if self.of_listed.is_empty():
            return []  # nothing counted instructions, so there is no order
        keys = list(instrumented.KERNEL_KEYS)
        counters: dict[tuple[str | None, ...], dict[str, float]] = {}
        for *key, event, value in self.of_listed.select(*keys, "event", "value").iter_rows():
            counters.setdefault(tuple(key), {})[event] = value
        derived = {
            tuple(row.pop(key) for key in keys): row
            for row in instrumented.kernel_metrics(self.of_listed, self.record.metrics).iter_rows(named=True)
        }
        found = []
        for row in self.largest.select(*keys, "share", instructions="value").iter_rows(named=True):
            owner = tuple(row[name] for name in keys)
            found.append(
                {
                    **row,
                    "counters": counters[owner],
                    "metrics": {name: value for name, value in derived[owner].items() if value is not None},
                }
            )
        return found


def instrumented_pass(
    record: PassRecord,
    companion: PassRecord | None,
    tables: Mapping[str, pl.DataFrame],
    kernel_counts: pl.LazyFrame,
    counted: Attribution,
    timed: Attribution | None,
    modules: pl.DataFrame,
) -> InstrumentedPass | None:
    """``tables``, ``kernel_counts``: the pass's own rows, and ``counted`` what they come to; ``timed``: the same of its
    companion, which did the same work uninstrumented.

    None where nothing was counted, or where it is not known which layers came to all of their calls.
    """
    not_comparable = instrumented.why_not_comparable(record, companion)
    if not_comparable is not None:
        timed = None
    done = None
    notes = []
    if companion is not None and timed is not None:
        differing = instrumented.calls_differ(counted, timed)
        if record.status != "completed":
            counted = instrumented.whole_layers(counted, timed)
            done = counted.counts["owner"].unique().to_list()
            notes.append(f"{record.reason}: counts of {_layers(len(done), 'complete layer')}, no sums")
        elif differing:
            notes.append(f"{_layers(differing)} called another number of times than in {companion.name}")
    if record.status != "completed" and timed is None:
        return None
    both = instrumented.joined(counted, timed)
    figures = layers.layer_table(modules, both, record.metrics, record.threads)
    events = summary.events(figures.counters)
    if not events:
        return None

    kernels = KernelCounts(
        tables["spans"], kernel_counts, tables["repeated_spans"], tables["kernels"], modules, counted, done
    )
    instructions = kernels.of_event(next((event["name"] for event in events if _orders(event)), None))
    largest = _large(instructions)
    counting = overhead.counting_overhead(both)
    return InstrumentedPass(
        record,
        not_comparable,
        notes,
        figures,
        events,
        counting,
        instructions,
        largest,
        _of_listed(kernels, largest),
        kernels,
        counted.calls,
    )


def with_same_counters(found: InstrumentedPass, counted: Counted | None) -> InstrumentedPass:
    """Of equal counters, a row a layer and event, one table is held: they are the same counts."""
    if counted is None or not found.figures.counters.equals(counted.layers.counters):
        return found
    return replace(found, figures=replace(found.figures, counters=counted.layers.counters))


def _orders(event: Mapping[str, Any]) -> bool:
    """Whether kernels are ranked by it."""
    return str(event["name"]).endswith(INSTRUCTIONS)


def _large(instructions: pl.DataFrame) -> pl.DataFrame:
    """The rows of the whole's kernels that are not small, and of the largest of every layer, largest first, with texts
    and their ``share``: of the layer's count, without the OpenMP runtime's, which are mostly waiting and have none."""
    domains = instructions["domain"].unique()
    waiting = pl.col("domain").is_in(domains.filter(domains.cast(pl.String) == OPENMP).implode())
    value = pl.when(~waiting).then("value")
    sums = instructions.group_by("layer").agg(total=value.sum(), most=value.max())
    shared = instructions.lazy().join(sums.lazy(), on="layer", nulls_equal=True)
    shared = shared.with_columns(
        share=pl.when(~waiting & (pl.col("total") > 0)).then(pl.col("value") / pl.col("total"))
    )
    of_whole = pl.col("layer").is_null() & (waiting | (pl.col("share") >= instrumented.SMALL))
    largest = (pl.col("share") >= LEAST_OF_LAYER) | (~waiting & (pl.col("value") == pl.col("most")))
    some = shared.filter(of_whole | (pl.col("layer").is_not_null() & largest)).collect(engine="streaming")
    apart = ["kernel", "layer", "library", "domain"]  # all that tells rows apart: every build of a report is the same
    ranked = some.sort("value", *apart, descending=[True, *(False for _ in apart)]).drop("total", "most")
    whole, rank = pl.col("layer").is_null(), pl.int_range(pl.len()).over("layer")
    return instrumented.as_text(pl.concat([ranked.filter(whole), ranked.filter(~whole).filter(rank < PER_LAYER)]))


def _of_listed(kernels: KernelCounts, listed: pl.DataFrame) -> pl.DataFrame:
    """All events of the kernels of ``listed``, in their layers."""
    parts = (instrumented.of_those(part, listed) for part in kernels.of_listed(listed))
    columns = instrumented.KERNELS_SCHEMA
    found = pl.concat([pl.DataFrame(schema=columns), *(part.select(columns.names()) for part in parts)])
    return found.with_columns(pl.col("value") / kernels.iterations)


def _layers(number: int, noun: str = "layer") -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
