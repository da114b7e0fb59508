"""``kernels_sampled.csv`` and ``layers_sampled.csv``: what samples tell of kernels and of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwprof.report.csv.roofline import OF_CODE, of_code
from hwprof.report.csv.table import Field, File, Table, fields_of, of_struct, table_of
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

_COMMON: Final = fields_of(SampledFigures)


def _columns(kind: type[SampledFigures], headers: Mapping[str, str], without: Sequence[str]) -> dict[str, Field]:
    """What layers and kernels have in common comes last."""
    own = of_struct(kind, headers, [*_COMMON, *without])
    return {**own, **{headers.get(name, name): Field(SampledFigures, name) for name in _COMMON}}


def _of_layers(headers: Mapping[str, str]) -> dict[str, Field]:
    return _columns(SampledLayer, headers, NESTED)


def _of_kernels(headers: Mapping[str, str]) -> dict[str, Field]:
    return _columns(SampledKernel, headers, ["roofline"])


_EITHER: Final = HEADERS | INSTRUMENTED_HEADERS
FILES: Final = (
    File("layers_sampled.csv", "a layer, by samples", {**_of_layers(HEADERS), **_of_layers(_EITHER)}),
    File(
        "kernels_sampled.csv",
        "a kernel of the whole, or of a layer, by samples",
        {**_of_kernels(HEADERS), **_of_kernels(_EITHER), **OF_CODE},
    ),
)


def files(document: Document) -> dict[str, Table]:
    """A row a layer; a row a kernel in the whole, and one a kernel and layer."""
    part = document.part(Kernels)
    if part is None:
        return {}
    headers = HEADERS | (INSTRUMENTED_HEADERS if part.cpi_provenance == INSTRUMENTED else {})
    kernels = table_of(part.with_names(), _of_kernels(headers)).columns
    return {
        "layers_sampled.csv": table_of(part.layers, _of_layers(headers)),
        "kernels_sampled.csv": Table({**kernels, **of_code([one.roofline for one in part.kernels])}),
    }
