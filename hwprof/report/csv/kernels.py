"""``kernels_sampled.csv`` and ``layers_sampled.csv``: what samples tell of kernels and of layers."""

from __future__ import annotations

from typing import Final

from hwprof.report.csv.roofline import of_code
from hwprof.report.csv.table import Table, columns_of, fields_of
from hwprof.report.document.document import Document
from hwprof.report.document.kernels import INSTRUMENTED, Kernels, SampledFigures, SampledKernel, SampledLayer

NESTED: Final = ("threads", "operators")
"""Of a sampled layer: lists, which JSON has."""

HEADERS: Final = {
    "cpu_ns": "cpu_time_ns",
    "cpi": "cpi_cycles_per_instruction",
    "cpi_low": "cpi_low_cycles_per_instruction",
    "cpi_high": "cpi_high_cycles_per_instruction",
    "llc_mpki": "llc_misses_per_1000_instructions",
    "off_cpu_ns": "off_cpu_time_ns",
    "preempted_ns": "preempted_time_ns",
    **{
        name: f"{name}_ratio"
        for name in (
            "share", "share_low", "share_high", "share_of_kernel", "wait_share", "named_share", "efficiency",
            "imbalance",
        )
    },
}  # fmt: skip
INSTRUMENTED_HEADERS: Final = {
    "instructions": "instructions_instrumented",
    **{name: f"{name}_instrumented_cycles_per_instruction" for name in ("cpi", "cpi_low", "cpi_high")},
}
"""Where no hardware counted them: see ``Kernels.cpi_meaning``."""


def files(document: Document) -> dict[str, Table]:
    """A row a layer; a row a kernel in the whole, and one a kernel and layer."""
    part = document.part(Kernels)
    if part is None:
        return {}
    common = fields_of(SampledFigures)
    of_layers = [name for name in fields_of(SampledLayer) if name not in (*common, *NESTED)]
    of_kernels = [name for name in fields_of(SampledKernel) if name not in (*common, "roofline")]
    headers = HEADERS | (INSTRUMENTED_HEADERS if part.cpi_provenance == INSTRUMENTED else {})
    kernels = columns_of(part.with_names(), [*of_kernels, *common], headers).columns
    return {
        "layers_sampled.csv": columns_of(part.layers, [*of_layers, *common], headers),
        "kernels_sampled.csv": Table({**kernels, **of_code([one.roofline for one in part.kernels])}),
    }
