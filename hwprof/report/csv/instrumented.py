"""``layers_PASS.csv`` and ``kernels_PASS.csv``: what a pass counted by instrumentation."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.figures import event_header, figure_columns, figure_table, metric_header
from hwprof.report.csv.layers import COLUMNS
from hwprof.report.csv.table import EVENT, METRIC, PASS, Field, File, Table
from hwprof.report.document.document import Document
from hwprof.report.document.instrumented import Instrumented, InstrumentedKernel, Pass, layers_of
from hwprof.report.document.layers import Layer

LAYER_COLUMNS: Final = tuple(name for name in COLUMNS if name != "share")
OF_KERNELS: Final = ("layer", "kernel", "library", "domain")
FILES: Final = (
    File(
        f"layers_{PASS}.csv",
        "a layer, as in layers.csv, in a pass that counted instrumented code",
        figure_columns(Layer, LAYER_COLUMNS, "time"),
    ),
    File(
        f"kernels_{PASS}.csv",
        "a kernel in a layer, or in the whole, in a pass that counted instrumented code",
        {
            **{name: Field(InstrumentedKernel, name) for name in OF_KERNELS},
            "share_ratio": Field(InstrumentedKernel, "share"),
            EVENT: "what was counted in it, over all threads, in an iteration",
            METRIC: "what follows from these",
        },
    ),
)


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
            **{name: [getattr(kernel, name) for kernel in rows] for name in OF_KERNELS},
            "share_ratio": [kernel.share for kernel in rows],
            **{event_header(event): one.kernel_counters[event.name] for event in events},
            **{metric_header(metric): [kernel.metrics.get(metric.name) for kernel in rows] for metric in known},
        }
    )
