"""The columns that stages, layers and layer types have in common: times, counters, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hwprof.hardware.metrics import csv_unit
from hwprof.report.csv.table import EVENT, METRIC, Columns, Field, Table, fields_of
from hwprof.report.document.counters import Column, Counters
from hwprof.report.document.figures import Figures, Times
from hwprof.report.document.metrics import Event, MetricInfo

UNITS: Final = {"bytes": "bytes_modelled", "macs": "macs_modelled", "share": "share_ratio"}

INSTRUMENTED: Final = ("instrumented", "simulated")
"""Provenances of what was counted by instrumentation."""


UNCOUNTED: Final = ("uncounted_ns", "uncounted_caller_ns")

OF_EVENTS: Final[Columns] = {
    EVENT: Field(Column, "value"),
    f"{EVENT}_mad": Field(Column, "mad"),
    f"{EVENT}_main": Field(Column, "main"),
    f"{EVENT}_workers": Field(Column, "workers"),
    f"{EVENT}_running_ratio": "for which part of the time its counter ran",
    f"{EVENT}_provenance": Field(Column, "provenance"),
}
"""Of an event whose unit is nanoseconds `_ns` stands behind the first four."""


def figure_columns(kind: type[Figures], names: Sequence[str], times: str) -> Columns:
    """Those of ``figure_table``."""
    return {
        **{UNITS.get(name, name): Field(kind, name) for name in names},
        **{f"{times}_{name}": Field(Times, name) for name in fields_of(Times)},
        **{name: Field(Figures, name) for name in UNCOUNTED},
        **OF_EVENTS,
        METRIC: "what follows from these",
    }


def figure_table(
    rows: Sequence[Figures],
    names: Sequence[str],
    times: str,
    counters: Counters,
    events: Sequence[Event],
    metrics: Sequence[MetricInfo],
) -> Table:
    """These fields of the rows, the statistics of the field ``times``, what was counted of ``counters``' owners, which
    are the rows, their metrics, and the time for which these lack something."""
    columns: dict[str, Sequence[Any]] = {UNITS.get(name, name): [getattr(row, name) for row in rows] for name in names}
    statistics = [getattr(row, times) for row in rows]
    columns |= {f"{times}_{name}": [getattr(one, name, None) for one in statistics] for name in fields_of(Times)}
    columns |= {name: [getattr(row, name) for row in rows] for name in UNCOUNTED}
    for event in events:
        columns |= _event_columns(counters, event)
    for metric in metrics:
        columns[metric_header(metric)] = [row.metrics.get(metric.name) for row in rows]
    return Table(columns)


def own_events(events: Sequence[Event]) -> list[Event]:
    """Those that were not counted by instrumentation: that pass has files of its own, the others have its metrics."""
    return [event for event in events if event.provenance not in INSTRUMENTED]


def metric_header(metric: MetricInfo) -> str:
    """A metric's column: its name and unit; "modelled" stands in it where the model's own figures went into it,
    "instrumented" or "simulated" where such counts did."""
    counted = [source for source in INSTRUMENTED if source in metric.sources]
    return "_".join(
        [metric.name, *(["modelled"] if metric.provenance == "modelled" else counted), csv_unit(metric.unit)]
    )


def event_header(event: Event) -> str:
    """An event's column, without its unit."""
    return event.name.replace("-", "_")


def _event_columns(counters: Counters, event: Event) -> Mapping[str, Sequence[Any]]:
    """An event's columns: all threads, spread, main thread, workers, and the share of time that its counter ran."""
    base = event_header(event)
    unit = "_ns" if event.unit == "ns" else ""  # others are units of a count times its weight
    headers = {"value": base, "mad": f"{base}_mad", "main": f"{base}_main", "workers": f"{base}_workers"}
    columns: dict[str, Sequence[Any]] = {
        f"{header}{unit}": counters.column(event.name, part) for part, header in headers.items()
    }
    known = [value is not None for value in counters.column(event.name)]
    if event.provenance not in INSTRUMENTED:
        ran = counters.column(event.name, "running_share")
        whole = 1.0 if all(share is None for share in ran) else None  # not said where nothing was multiplexed
        columns[f"{base}_running_ratio"] = [
            whole if one and share is None else share for one, share in zip(known, ran, strict=True)
        ]
    columns[f"{base}_provenance"] = [event.provenance if one else None for one in known]
    return columns
