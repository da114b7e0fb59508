"""Passes that counted by instrumentation: their layers and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.counters import Values
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layers, of_figures
from hwprof.report.document.metrics import Event, MetricInfo, event_infos, metric_infos
from hwprof.report.document.part import Part
from hwprof.run.manifest import PassStatus
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.instrumented_pass import InstrumentedPass
    from hwprof.analysis.run_analysis import RunAnalysis


class InstrumentedKernel(msgspec.Struct, kw_only=True, frozen=True):
    """A function, or a JIT kernel, in one layer or in the whole (``layer`` is null); what it did itself."""

    layer: str | None  # its path; null: the whole
    kernel: str  # its name
    library: str  # the file's name; "jit"; "unknown"
    domain: str  # what its library is there for: jit, torch, runtime, openmp, tbb, python, system, other
    instructions: float  # of one iteration
    share: float | None  # of the layer's instructions
    metrics: dict[str, float]  # what follows from them; cycles per instruction: ``Kernels``


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
    layers: Layers | None  # null: the figures of the document's own ``layers``, where these counts are among the others
    kernels: list[InstrumentedKernel]  # of the whole and of each layer, the largest first
    kernel_counters: dict[str, Values]  # by event: one for each of ``kernels``


class Instrumented(Part, kw_only=True, frozen=True):
    """The passes, in order."""

    passes: list[Pass]


PART: Final = Instrumented


def build(analysis: RunAnalysis) -> Instrumented | Unavailable:
    """From every kept pass whose times are another's."""
    passes = [_pass(one, analysis) for one in analysis.instrumented]
    return Instrumented(passes=passes) if passes else Unavailable("no instrumented pass was completed")


def layers_of(one: Pass, document: Document) -> Layers | None:
    """The layers of a pass of the document; None where they are the document's, and a damaged table costs these."""
    return one.layers or document.part(Layers)


def _is_in_layers(one: InstrumentedPass, analysis: RunAnalysis) -> bool:
    """Whether the figures of the run's layers have all of the pass's counts, and the same metrics of them."""
    counted, record = analysis.counted, one.record
    if counted is None or counted.record is not record or record.status != "completed" or one.not_comparable:
        return False
    return all(metric in analysis.definitions for metric in record.metrics)


def _pass(one: InstrumentedPass, analysis: RunAnalysis) -> Pass:
    record, figures = one.record, one.figures
    events = event_infos(record.events, one.events)
    listed = one.listed()
    counted = [row.pop("counters") for row in listed]
    of_any = set[str]().union(*counted)
    known = [event.name for event in events if event.name in of_any]
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
        layers=None if _is_in_layers(one, analysis) else of_figures(figures, one.counting, None, {}),
        kernels=[InstrumentedKernel(**row) for row in listed],
        kernel_counters={event: [row.get(event) for row in counted] for event in known},
    )
