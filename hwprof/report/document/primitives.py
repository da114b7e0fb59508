"""oneDNN's primitives. Provenance of times: measured (oneDNN's own clock and the layers'; samples)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.part import Part
from hwprof.report.document.roofline import CodeUnderRoofs, of_code
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis

REORDER: Final = "reorder"
"""The primitive that changes a layout."""


class Primitive(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What a layer executed alike, in the words of oneDNN; sums over the executions of one iteration
    (of those in which oneDNN reported the one in which the layer took the median of its times)."""

    layer: str  # its path
    primitive: str  # convolution, matmul, reorder, ...
    implementation: str  # brgconv:avx512_core, jit:avx2, ref:any, ...
    data_types: str  # "src:f32 wei:f32 dst:f32"
    layouts: str  # "src:abcd wei:Acdb16a dst:aBcd16b"
    algorithm: str | None  # in oneDNN's words
    tensor: str | None = None  # that a reorder brought into another layout: input, weights, output; null: not known
    problem: str  # of the slowest
    executions: int  # how many
    time_ns: int  # by oneDNN's clock
    flops: float | None = None  # of all executions, 2 a multiply-accumulate of their problems; null: not known
    bytes: float | None = None  # of their tensors, once
    share: float  # of the layer's time in an iteration
    fallback: str | None = None  # reference, plain, generic, narrow; null: nothing to say
    reason: str | None = None  # why that is one
    remedy: str | None = None  # what to do
    roofline: CodeUnderRoofs | None = None  # null: no peaks, no operations, or not in FP32


class Fallback(msgspec.Struct, kw_only=True, frozen=True):
    """One implementation that something better could stand for, and the layers that execute it, slowest first."""

    kind: str  # reference, plain, generic, narrow
    primitive: str
    implementation: str
    reason: str
    remedy: str | None
    layers: list[str]
    executions: int
    time_ns: int
    share: float | None  # of the whole


class Bypass(msgspec.Struct, kw_only=True, frozen=True):
    """Layers of one type that executed no primitive in some of their calls, slowest first. ``reason`` is null where
    oneDNN is never asked for this type."""

    type: str | None
    reason: str | None
    remedy: str | None
    layers: list[str]
    calls: int
    time_ns: int
    share: float | None  # of the whole


class Reorders(msgspec.Struct, kw_only=True, frozen=True):
    """What it took to bring one kind of tensor from one memory layout into another, by oneDNN's clock: page faults of
    whoever writes first to new memory and waiting for threads are in it."""

    tensor: str | None  # input, weights, output; null: not known
    remedy: str | None
    layers: int
    executions: int
    time_ns: int
    share: float | None  # of the whole


class SampledReorders(msgspec.Struct, kw_only=True, frozen=True):
    """Which part of the processor time is spent in code that changes layouts. Intervals are 95%."""

    path: str | None  # a layer's; null: the whole
    samples: int  # of such code
    cpu_ns: float  # an iteration's, over all threads
    share: float  # of the layer's processor time, or the inference's
    share_low: float
    share_high: float


class Primitives(Part, kw_only=True, frozen=True):
    """All of it, from the iterations in which oneDNN reported. ``whole_ns`` is the time of what layers are parts of (as
    the inference) in one of them: reporting made it longer, the primitives' own times not."""

    pass_name: str
    version: str | None  # oneDNN's
    instruction_set: str | None  # that it allows itself, in its words
    vector_bits: int | None  # of the processor
    iterations: int
    whole_ns: int
    executed: int  # in all iterations
    joined: int
    not_joined: dict[str, int]  # by reason: no time, outside layers, several layers, across an edge
    clock_error_ns: int
    margin_ns: int | None  # the least distance of a joined primitive from its layer's edges
    by_layer: list[Primitive]  # layers in order of execution, most time first within a layer
    fallbacks: list[Fallback]  # most time first
    bypasses: list[Bypass]  # most time first
    reorders: list[Reorders]  # most time first
    sampled_from: str | None  # the pass of ``sampled_reorders``
    sampled_reorders: list[SampledReorders]  # the whole, then layers; empty: no samples, or JIT code has no names


PART: Final = Primitives


def build(analysis: RunAnalysis) -> Primitives | Unavailable:
    """From the first completed pass in which oneDNN reported."""
    from hwprof.analysis.implementations import vector_bits
    from hwprof.analysis.kernel_roofline import of_primitives
    from hwprof.analysis.reported_primitives import reported_primitives

    reported = reported_primitives(analysis)
    if reported is None:
        return Unavailable("oneDNN reported in no completed pass")
    found, detail = reported.found, reported.detail
    taken = analysis.sampled
    sampled = taken.reorders() if taken is not None else []
    not_joined = found.not_joined()
    rows = found.by_layer.to_dicts()
    under = of_primitives(analysis, rows)
    return Primitives(
        pass_name=reported.record.name,
        version=detail.version,
        instruction_set=detail.instruction_set,
        vector_bits=vector_bits(detail.machine_flags),
        iterations=found.iterations,
        whole_ns=found.whole_ns,
        executed=found.calls.height,
        joined=found.calls.height - sum(not_joined.values()),
        not_joined=not_joined,
        clock_error_ns=reported.error_ns,
        margin_ns=found.margin_ns,
        by_layer=[
            Primitive(layer=row.pop("path"), **row, roofline=of_code(one)) for row, one in zip(rows, under, strict=True)
        ],
        fallbacks=[Fallback(**row) for row in reported.fallbacks()],
        bypasses=[Bypass(**row) for row in reported.bypasses()],
        reorders=[Reorders(**row) for row in reported.reorders()],
        sampled_from=taken.record.name if taken is not None and sampled else None,
        sampled_reorders=[SampledReorders(**row) for row in sampled],
    )
