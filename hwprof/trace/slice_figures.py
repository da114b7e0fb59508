"""What slices say of their counts, by thread, and of their metrics: most of what a trace says, so by the column."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from hwprof.run.process_events import WHOLE_PROCESS_TID
from hwprof.trace import packets
from hwprof.trace.annotation_columns import Values, encoded, grouped, nested, split
from hwprof.trace.annotations import ENTRY, Annotations
from hwprof.trace.argument_names import ArgumentNames
from hwprof.trace.packet_sequence import Ints
from hwprof.trace.slice_metrics import PLAIN, MetricOrigins

NAMES: Final = frozenset(
    {
        "metric_provenance", "counts_pass", "counts", "main", "workers", "worker", "running_share", "provenance",
    }
)  # fmt: skip
"""Of the arguments here."""

_KEYS: Final = ["owner", "event"]


class Known(NamedTuple):
    """What is known of spans beside their own rows: rows of ``counts`` by ``span``, in its order, events and
    provenances as ``large_tables.numbered`` has them; and ``derived``: a row a span, a column a metric."""

    counts: pl.DataFrame
    derived: pl.DataFrame

    def of(self, spans: Ints) -> Known:
        """Of some, with ``owner``: the place among these; in this order."""
        places = pl.DataFrame({"span": spans, "owner": np.arange(len(spans))})
        low, high = (int(spans.min()), int(spans.max())) if len(spans) else (0, -1)

        def some(rows: pl.DataFrame) -> pl.DataFrame:
            begin, end = (int(rows["span"].search_sorted(*one)) for one in ((low, "left"), (high, "right")))
            found = rows.slice(begin, end - begin).join(places, on="span", how="inner", maintain_order="left")
            return found if found["owner"].is_sorted() else found.sort("owner", maintain_order=True)

        return Known(some(self.counts), some(self.derived))


class SliceFigures:
    """Those of the slices of one pass."""

    def __init__(
        self, main: Collection[int | None], reserved: Collection[str] = (), origins: MetricOrigins = PLAIN
    ) -> None:
        """``main``: the threads that call the model; ``reserved``: names that no metric takes; ``origins``: of the
        metrics."""
        self._main = [tid for tid in main if tid is not None]
        self._event_names, self._metric_names = ArgumentNames(), ArgumentNames({*reserved, *NAMES})
        self._origins = origins

    def encoded(self, known: Known, spans: Ints, annotations: Annotations) -> list[bytes]:
        """Of each span TrackEvent.debug_annotations, in the sequence of ``annotations``."""
        some = known.of(spans)
        parts = [
            self._metrics(some.derived, len(spans), annotations),
            *self._counts(some.counts, len(spans), annotations),
        ]
        return list(map(b"".join, zip(*parts, strict=True)))

    def _metrics(self, derived: pl.DataFrame, slices: int, annotations: Annotations) -> list[bytes]:
        """By their names, and what is to be known of where they come from."""
        names = [name for name in derived.columns if name not in ("span", "owner")]
        if not names:
            return [b""] * slices
        there = derived.select(pl.col(names).is_not_null()).to_numpy()
        row, column = np.nonzero(there)
        values = derived.select(pl.col(names).cast(pl.Float64).fill_null(0.0)).to_numpy()[row, column]
        owner = derived["owner"].to_numpy()
        given = [self._metric_names.of(name) for name in names]
        found = encoded(
            packets.EVENT_ANNOTATION, Values(owner[row], column, given, values), annotations.interned, slices
        )
        which, alike = np.unique(there, axis=0, return_inverse=True)
        origins = [
            annotations.encode(self._origins_of([names[place] for place in np.flatnonzero(one)])) for one in which
        ]
        for slice_, kind in zip(owner.tolist(), alike.reshape(-1).tolist(), strict=True):
            found[slice_] += origins[kind]
        return found

    def _origins_of(self, names: Collection[str]) -> Mapping[str, Any]:
        known = self._origins.by_metric
        kinds = {self._metric_names.of(name): known[name] for name in names if name in known}
        joined = self._origins.joined.intersection(names)
        return {"metric_provenance": kinds or None, "counts_pass": self._origins.counts_pass if joined else None}

    def _counts(self, counts: pl.DataFrame, slices: int, annotations: Annotations) -> list[list[bytes]]:
        """Groups of them, in the order in which they are to be read."""
        interned = annotations.interned
        events = _texts(counts["event"])
        names = [self._event_names.of(event) for event in events]
        rows = counts.with_columns(pl.col("event").to_physical(), source=pl.col("provenance").to_physical())
        of_workers = ~pl.col("tid").is_in([*self._main, WHOLE_PROCESS_TID])
        summed = rows.group_by(_KEYS, maintain_order=True).agg(
            pl.col("value", "enabled_ns", "running_ns").sum(),
            pl.col("source").min(),
            several=pl.col("source").min() < pl.col("source").max(),
        )

        def group(name: str, found: pl.DataFrame, texts: list[str] | None = None) -> list[bytes]:
            owner, event = (found[column].to_numpy().astype(np.int64) for column in _KEYS)
            values = Values(owner, event, names, found["value"].to_numpy(), texts)
            return grouped(name, encoded(ENTRY, values, interned, slices), interned)

        main, workers = rows.filter(pl.col("tid").is_in(self._main)), rows.filter(of_workers)
        share = pl.col("running_ns") / pl.col("enabled_ns")
        multiplexed = summed.filter(pl.col("running_ns") < pl.col("enabled_ns")).with_columns(value=share)
        return [
            group("counts", summed),
            group("main", _summed(main)),
            group("workers", _summed(workers)),
            self._by_worker(workers, names, slices, annotations),
            group("running_share", multiplexed),
            group("provenance", *_provenances(summed, counts)),
        ]

    def _by_worker(self, workers: pl.DataFrame, names: list[str], slices: int, annotations: Annotations) -> list[bytes]:
        """Of the slices that several workers worked for, each event's values by thread."""
        several = workers.group_by(_KEYS).agg(pl.col("tid").n_unique()).filter(pl.col("tid") > 1)["owner"].unique()
        found = workers.filter(pl.col("owner").is_in(several.implode()))
        found = found.group_by([*_KEYS, "tid"], maintain_order=True).agg(pl.col("value").last())
        if found.is_empty():
            return [b""] * slices
        pairs = found.select(_KEYS).unique(maintain_order=True).with_row_index("pair")
        found = found.join(pairs, on=_KEYS, how="left").sort("pair", maintain_order=True)
        tids = found["tid"].unique().sort()
        values = Values(
            found["pair"].to_numpy().astype(np.int64),
            tids.search_sorted(found["tid"]).to_numpy().astype(np.int64),
            [f"tid_{tid}" for tid in tids],
            found["value"].to_numpy(),
        )
        interned = annotations.interned
        by_event = encoded(ENTRY, values, interned, pairs.height)
        entries = nested([names[event] for event in pairs["event"]], by_event, interned)
        order = pairs.sort("owner", maintain_order=True)
        entries = [entries[pair] for pair in order["pair"]]
        sizes = np.array([len(entry) for entry in entries], dtype=np.int64)
        owners = order["owner"].to_numpy()
        return grouped("worker", split(b"".join(entries), owners, sizes, slices), interned)


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(_KEYS, maintain_order=True).agg(pl.col("value").sum())


def _texts(names: pl.Series) -> list[str]:
    """Those that its numbers stand for."""
    assert isinstance(names.dtype, pl.Enum)
    return names.dtype.categories.to_list()


def _provenances(summed: pl.DataFrame, counts: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Of each event of a slice which text says where it comes from, as ``value``, and these texts."""
    texts = _texts(counts["provenance"])
    found = summed.with_columns(value=pl.col("source").cast(pl.Int64))
    if not summed["several"].any():
        return found, texts
    mixed = (
        counts.with_columns(pl.col("event").to_physical())
        .join(summed.filter("several"), on=_KEYS, how="semi")
        .group_by(_KEYS)
        .agg(text=pl.col("provenance").cast(pl.String).unique().sort().str.join(", "))
    )
    kinds = mixed["text"].unique().sort()
    mixed = mixed.with_columns(mixed=pl.Series(kinds.search_sorted(mixed["text"])).cast(pl.Int64) + len(texts))
    found = found.join(mixed, on=_KEYS, how="left", maintain_order="left")
    return found.with_columns(value=pl.coalesce("mixed", "value")), [*texts, *kinds]
