"""``layers_PASS.csv`` and ``kernels_PASS.csv``: what a pass counted by instrumentation."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.figures import event_header, figure_table, metric_header
from hwprof.report.csv.layers import COLUMNS
from hwprof.report.csv.table import Table
from hwprof.report.document.document import Document
from hwprof.report.document.instrumented import Instrumented, Pass, layers_of

LAYER_COLUMNS: Final = tuple(name for name in COLUMNS if name != "share")


def files(document: Document) -> dict[str, Table]:
    """Two files a pass."""
    part = document.part(Instrumented)
    if part is None:
        return {}
    found = {}
    for one in part.passes:
        layers = layers_of(one, document)
        if layers is not None:
            found[f"layers_{one.name}.csv"] = figure_table(
                layers.every, LAYER_COLUMNS, "time", layers.counters, one.events, one.metrics
            )
        found[f"kernels_{one.name}.csv"] = _kernels(one)
    return found


def _kernels(one: Pass) -> Table:
    rows = one.kernels
    known = [metric for metric in one.metrics if any(kernel.metrics.get(metric.name) for kernel in rows)]
    events = [event for event in one.events if event.name in one.kernel_counters]
    return Table(
        {
            **{name: [getattr(kernel, name) for kernel in rows] for name in ("layer", "kernel", "library", "domain")},
            "share_ratio": [kernel.share for kernel in rows],
            **{event_header(event): one.kernel_counters[event.name] for event in events},
            **{metric_header(metric): [kernel.metrics.get(metric.name) for kernel in rows] for metric in known},
        }
    )
