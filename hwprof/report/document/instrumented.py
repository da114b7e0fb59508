"""Passes that counted by instrumentation: their layers and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.layers import Layer, of_figures
from hwprof.report.document.metrics import Event, MetricInfo, event_infos, metric_infos
from hwprof.report.document.part import Part
from hwprof.run.manifest import PassStatus
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.instrumented_pass import InstrumentedPass
    from hwprof.analysis.run_analysis import RunAnalysis


class InstrumentedKernel(msgspec.Struct, kw_only=True, frozen=True):
    """A function, or a JIT kernel, in one layer or in the whole (``layer`` is null); what it did itself."""

    layer: str | None
    kernel: str
    library: str  # the file's name; "jit"; "unknown"
    domain: str  # what its library is there for: jit, torch, openmp, python, system, other
    instructions: float  # of one iteration
    share: float | None  # of the layer's instructions
    counters: dict[str, float]  # events of the pass
    metrics: dict[str, float | None]  # what follows from them; cycles per instruction: ``Kernels``
    provenance: dict[str, str]  # of each


class Pass(msgspec.Struct, kw_only=True, frozen=True):
    """What a pass counted by instrumentation. Its layers' times are those of ``times_from``, where the same work was
    done uninstrumented; ``not_comparable`` says why there are none."""

    name: str
    status: PassStatus
    times_from: str | None
    not_comparable: str | None
    instruction_set: str | None  # what both passes were restricted to; null: the machine's own
    threads: int | None
    environment: dict[str, str]
    notes: list[str]
    events: list[Event]
    metrics: list[MetricInfo]
    layers: list[Layer]
    unattributed: Layer | None
    whole: Layer | None
    kernels: list[InstrumentedKernel]  # of the whole and of each layer, the largest first


class Instrumented(Part, kw_only=True, frozen=True):
    """The passes, in order."""

    passes: list[Pass]


PART: Final = Instrumented


def build(analysis: RunAnalysis) -> Instrumented | Unavailable:
    """From every kept pass whose times are another's."""
    passes = [_pass(one, analysis) for one in analysis.instrumented]
    return Instrumented(passes=passes) if passes else Unavailable("no instrumented pass was completed")


def _pass(one: InstrumentedPass, analysis: RunAnalysis) -> Pass:
    record, figures = one.record, one.figures
    events = event_infos(record.events, one.events)
    layers = of_figures(figures, one.counting, None, {})
    return Pass(
        name=record.name,
        status=record.status,
        times_from=record.times_from,
        not_comparable=one.not_comparable,
        instruction_set=record.instruction_set,
        threads=record.threads,
        environment=record.environment,
        notes=one.notes,
        events=events,
        metrics=metric_infos(
            record.metrics, figures.operands, figures.across_iterations, events, record, analysis.machine
        ),
        layers=layers.rows,
        unattributed=layers.unattributed,
        whole=layers.whole,
        kernels=[InstrumentedKernel(**row) for row in one.listed()],
    )
