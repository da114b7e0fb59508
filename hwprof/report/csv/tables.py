"""The document's tables as CSV files in the run directory: full precision, units in the headers.

An empty cell is: not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import polars as pl

from hwprof.analysis.energy import SCHEMA as ENERGY_SCHEMA
from hwprof.hardware.metrics import csv_unit
from hwprof.report.csv import threads
from hwprof.report.document.kernels_schema import Sampled, SampledFigures, SampledKernel, SampledLayer
from hwprof.report.document.primitives_schema import Primitive
from hwprof.report.document.schema import Document, Event, Figures, Followed, Layer, MetricInfo, Times
from hwprof.report.text.choice import NOT_BY_HARDWARE
from hwprof.run.directory import RunDirectory, atomic

LAYER_COLUMNS: Final = (
    "order", "index", "path", "type", "input_shapes", "output_shapes", "more_shapes", "parameters", "macs", "bytes",
    "calls", "share",
)  # fmt: skip
LAYER_TYPE_COLUMNS: Final = ("type", "layers", "parameters", "macs", "bytes", "calls", "share")
STAGE_COLUMNS: Final = ("name", "inside", "calls", "total_ns", "share")
UNITS: Final = {
    "bytes": "bytes_modelled",
    "macs": "macs_modelled",
    "calls": "calls",
    "share": "share_ratio",
    "seconds": "duration_seconds",
    "watts": "power_watts",
    "watts_error": "power_error_watts",
    "idle_watts": "idle_power_watts",
    "joules": "energy_joules",
    "joules_error": "energy_error_joules",
    "joules_above_idle": "energy_above_idle_joules",
    "joules_per_iteration": "energy_per_iteration_joules",
}
NESTED: Final = ("threads", "operators")
"""Of a sampled layer: lists, which JSON has."""

SAMPLED_UNITS: Final = {
    "cpu_ns": "processor_time_ns",
    "cpi": "cpi_cycles_per_instruction",
    "cpi_low": "cpi_low_cycles_per_instruction",
    "cpi_high": "cpi_high_cycles_per_instruction",
    "llc_mpki": "llc_misses_per_1000_instructions",
    "off_ns": "off_processor_time_ns",
    "preempted_ns": "preempted_time_ns",
    **{
        name: f"{name}_ratio"
        for name in (
            "share", "share_low", "share_high", "share_of_kernel", "wait_share", "named_share", "efficiency",
            "imbalance",
        )
    },
}  # fmt: skip
FOLLOWED_UNITS: Final = {
    "instructions": "instructions_instrumented",
    **{name: f"{name}_instrumented_cycles_per_instruction" for name in ("cpi", "cpi_low", "cpi_high")},
}
"""Where no hardware counted them: see ``Sampled.cpi_meaning``."""

FLOP_COLUMNS: Final = ("counted", "analytic", "ratio", "verdict", "reason")


def write_csv_files(run: RunDirectory, document: Document) -> None:
    """Writes ``layers.csv``, ``layer_types.csv``, ``steps.csv`` and ``energy.csv``, each atomically; ``primitives.csv``
    where oneDNN reported; ``sampled_layers.csv``, ``sampled_kernels.csv`` and ``waiting.csv`` where samples were taken;
    and layers and kernels of passes that counted by following the code.

    Raises ``OSError`` where the directory cannot be written.
    """
    for name, frame in csv_frames(document).items():
        with atomic(run.path / name) as part:
            frame.write_csv(part)


def csv_frames(document: Document) -> dict[str, pl.DataFrame]:
    """The files' contents by file name; a table without rows has its headers."""
    leaves = [*document.layers, *(row for row in (document.unattributed, document.inference) if row is not None)]
    energy = pl.DataFrame([msgspec.to_builtins(row) for row in document.energy], schema=ENERGY_SCHEMA)
    return {
        "layers.csv": _frame(leaves, LAYER_COLUMNS, "time", document).with_columns(_flop_columns(leaves)),
        "layer_types.csv": _frame(document.layer_types, LAYER_TYPE_COLUMNS, "time", document),
        "steps.csv": _frame(document.stages, STAGE_COLUMNS, "call", document),
        "energy.csv": energy.rename(UNITS, strict=False),
        **_sampled_frames(document.sampled),
        **threads.frames(document.waiting),
        **_primitives_frame(document),
        **{name: frame for found in document.followed for name, frame in _followed_frames(found).items()},
    }


def _sampled_frames(sampled: Sampled | None) -> dict[str, pl.DataFrame]:
    """The sampled layers, and the kernels of the whole and of each layer, where samples were taken."""
    if sampled is None:
        return {}
    tables: tuple[tuple[str, type[SampledFigures], Sequence[SampledFigures]], ...] = (
        ("sampled_layers.csv", SampledLayer, sampled.layers),
        ("sampled_kernels.csv", SampledKernel, sampled.kernels),
    )
    common = [field.name for field in msgspec.structs.fields(SampledFigures)]
    frames = {}
    for file, kind, rows in tables:
        own = [field.name for field in msgspec.structs.fields(kind) if field.name not in (*common, *NESTED)]
        by_following = kind is SampledKernel and sampled.instructions_from is not None
        headers = SAMPLED_UNITS | (FOLLOWED_UNITS if by_following else {})
        cells = {headers.get(name, name): [getattr(row, name) for row in rows] for name in (*own, *common)}
        frames[file] = pl.DataFrame(cells, strict=False, infer_schema_length=None)
    return frames


def _primitives_frame(document: Document) -> dict[str, pl.DataFrame]:
    """What each layer executed of oneDNN, where that reported."""
    if document.primitives is None:
        return {}
    rows = [msgspec.to_builtins(row) for row in document.primitives.by_layer]
    columns = [field.name for field in msgspec.structs.fields(Primitive)]
    frame = pl.DataFrame(rows, schema=columns, infer_schema_length=None)
    return {"primitives.csv": frame.rename({"share": "share_of_layer_ratio"})}


def _followed_frames(found: Followed) -> dict[str, pl.DataFrame]:
    """The layers and the kernels of a pass that counted by following the code."""
    layers = [*found.layers, *(row for row in (found.unattributed, found.inference) if row is not None)]
    counted = {name for kernel in found.kernels for name in kernel.counters}
    told = [metric for metric in found.metrics if any(kernel.metrics.get(metric.name) for kernel in found.kernels)]
    by_kernel = [event for event in found.events if event.name in counted]
    kernels = [
        {
            "layer": kernel.layer,
            "kernel": kernel.kernel,
            "library": kernel.library,
            "domain": kernel.domain,
            "share_ratio": kernel.share,
            **{event.name.replace("-", "_"): kernel.counters.get(event.name) for event in by_kernel},
            **{metric_header(metric): kernel.metrics.get(metric.name) for metric in told},
        }
        for kernel in found.kernels
    ]
    return {
        f"layers_{found.name}.csv": _frame(layers, LAYER_COLUMNS[:-1], "time", found),
        f"kernels_{found.name}.csv": pl.DataFrame(kernels, infer_schema_length=None),
    }


def _frame(rows: Sequence[Figures], columns: Sequence[str], times: str, document: Document | Followed) -> pl.DataFrame:
    """What followed code counted stands in files of its own; in the others are the metrics that it gives."""
    own = isinstance(document, Followed)
    events = [event for event in document.events if own or event.provenance not in NOT_BY_HARDWARE]
    names = {
        **{name: UNITS.get(name, name) for name in columns},
        **{field.name: f"{times}_{field.name}" for field in msgspec.structs.fields(Times)},
    }
    cells: dict[str, list[Any]] = {header: [] for header in names.values()}
    for row in rows:
        for name in columns:
            cells[names[name]].append(getattr(row, name))
        statistics = getattr(row, times)
        for field in msgspec.structs.fields(Times):
            cells[names[field.name]].append(getattr(statistics, field.name, None))
    for event in events:
        cells |= _event_cells(rows, event)
    for metric in document.metrics:
        cells[metric_header(metric)] = [row.metrics.get(metric.name) for row in rows]
    return pl.DataFrame(cells, strict=False, infer_schema_length=None)


def _flop_columns(layers: Sequence[Layer]) -> list[pl.Series]:
    """Counted FLOPs against analytic ones."""
    types = dict.fromkeys(FLOP_COLUMNS[:3], pl.Float64) | dict.fromkeys(FLOP_COLUMNS[3:], pl.String)
    return [
        pl.Series(f"flops_{name}", [getattr(layer.flops, name, None) for layer in layers], dtype)
        for name, dtype in types.items()
    ]


def _event_cells(rows: Sequence[Figures], event: Event) -> dict[str, list[Any]]:
    """An event's columns: all threads, spread, main thread, workers, and the share of time that its counter ran."""
    base = event.name.replace("-", "_")
    unit = "_ns" if event.unit == "ns" else ""  # others are units of a count times its weight
    found = [row.counters.get(event.name) for row in rows]
    fields = {"value": base, "mad": f"{base}_mad", "main": f"{base}_main", "workers": f"{base}_workers"}
    cells: dict[str, list[Any]] = {
        f"{header}{unit}": [getattr(counter, field, None) for counter in found] for field, header in fields.items()
    }
    if event.provenance not in NOT_BY_HARDWARE:
        cells[f"{base}_running_ratio"] = [counter.running_share if counter else None for counter in found]
    cells[f"{base}_provenance"] = [counter.provenance if counter else None for counter in found]
    return cells


def metric_header(metric: MetricInfo) -> str:
    """A metric's column: its name and unit; "modelled" stands in it where the model's own figures went into it,
    "instrumented" or "simulated" where counts of followed code did."""
    unit = csv_unit(metric.unit)
    followed = [source for source in NOT_BY_HARDWARE if source in metric.sources]
    return "_".join([metric.name, *(["modelled"] if metric.provenance == "modelled" else followed), unit])
