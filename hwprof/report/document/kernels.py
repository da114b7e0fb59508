"""Sampled kernels: which code took the processor time, in the whole and in each layer.

Processor times are those of one iteration, over all threads. Intervals are 95%, of the sampling alone. Null is: not
measured, or not known from so few samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hwprof.analysis.no_cpi import OTHER_WORK
from hwprof.analysis.reasons import AGAIN, NO_SAMPLES, Missing
from hwprof.report.document.part import Part
from hwprof.report.document.roofline import CodeUnderRoofs, of_code
from hwprof.run.passes import TRACE
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis import kernel_roofline
    from hwprof.analysis.kernel_roofline import Key
    from hwprof.analysis.run_analysis import RunAnalysis
    from hwprof.analysis.sampled_cpi import KernelCpi
    from hwprof.analysis.sampled_pass import SampledPass

MEASURED: Final = "measured"
INSTRUMENTED: Final = "instrumented"

FEW_IN_ALL: Final = 1000
"""With fewer samples of the inference than that, a share of 5% is known to no better than 1.5 percentage points."""

SAMPLER: Final = "sampler"
"""The collector that takes samples."""


class Coverage(msgspec.Struct, kw_only=True, frozen=True):
    """Samples with one kind of owner."""

    where: str  # "layer", "unattributed": in the inference and between layers, "outside" of the inference
    samples: int
    cpu_ns: float
    share: float | None  # of the inference's; null outside of it


class SampledFigures(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What layers and kernels have in common."""

    samples: int  # so many tell of it
    cpu_ns: float  # processor time of an iteration, over all threads
    share: float | None  # of the processor time
    share_low: float | None  # its 95% interval
    share_high: float | None  # as share_low
    cpi: float | None = None  # cycles per instruction
    cpi_low: float | None = None  # null where cycles were counted: then nothing tells
    cpi_high: float | None = None  # as cpi_low
    cpi_missing: str | None = None  # why there is no CPI, in few words
    llc_mpki: float | None = None  # last-level cache misses


class SampledThread(msgspec.Struct, kw_only=True, frozen=True):
    """A thread in one layer: at work, in the OpenMP runtime, off its processor."""

    tid: int
    name: str | None
    role: str  # "calling", "team" (waits for others in the OpenMP runtime), "other"
    samples: int
    busy_ns: float
    wait_ns: float
    off_cpu_ns: float | None  # these two: null where no switches were recorded
    preempted_ns: float | None  # of ``off_cpu_ns``: it would have gone on


class SampledOperator(msgspec.Struct, kw_only=True, frozen=True):
    """A framework operator that was running (the innermost one) when a layer's samples were taken."""

    operator: str | None  # null: none was; or another thread's work, whose operators are not recorded
    samples: int
    share: float  # of the layer's processor time


class SampledLayer(SampledFigures, kw_only=True, frozen=True):
    """A leaf layer, or ``unattributed``. The share is of the inference's processor time."""

    path: str  # of the layer; unattributed: what no layer owns
    wait_share: float | None = None  # of its processor time: in the OpenMP runtime
    named_share: float | None = None  # of its processor time: in code that has a name
    threads_sharing: int | None = None  # its work: as many as the workload runs with, or more that were busy in it
    unsampled_share: float | None = None  # of its work, at most: new threads, before their first sample
    efficiency: float | None = None  # busy time / (these threads x wall time); null also where that share is >= 10%
    imbalance: float | None = None  # the busiest of these threads' busy time over their mean, minus 1
    off_cpu_ns: float | None = None  # of threads that work in the inference, or share it; null: no switches recorded
    preempted_ns: float | None = None  # of that: it would have gone on
    threads: list[SampledThread]
    operators: list[SampledOperator]  # most first; empty where no operators were recorded in that pass


class Waiting(msgspec.Struct, kw_only=True, frozen=True):
    """Code that takes processor time and does no work. The share is of the inference's processor time."""

    cause: str | None  # "OpenMP", "futex", …; null: all of it
    samples: int
    cpu_ns: float
    share: float | None
    share_low: float | None
    share_high: float | None


class SampledKernel(SampledFigures, kw_only=True, frozen=True, omit_defaults=True):
    """A function, or the JIT kernels of one name, in a layer or in the whole (``layer`` is null); what it did itself.
    The share is of the layer's processor time, or of the inference's."""

    layer: str | None  # its path; null: the whole
    kernel: str  # its short name
    waits: str | None = None  # for what; null: it works, as far as its name tells
    full_name: str | None = None  # where it says more; of several with one short name, that with the most samples;
    # of a layer only where it is not that of the whole (``with_names``)
    code_ranges: int  # how many code ranges have that name
    library: str  # the file's name; "jit"; "[kernel]"; "[unknown]"
    domain: str  # what its library is there for: jit, torch, runtime, openmp, tbb, python, system, kernel, other
    instructions: float | None = None  # between samples, or as ``instructions_from`` counted them in it
    layers: int | None = None  # of the whole: in how many layers it was met
    share_of_kernel: float | None = None  # of a layer: which part of the kernel's processor time this layer has
    roofline: CodeUnderRoofs | None = None  # null: no peaks, or nobody knows its operations or bytes


class Sampling(Part, kw_only=True, frozen=True):
    """How it was sampled: of the passes the one with the most samples of timed iterations."""

    pass_name: str
    event: str
    frequency_hz: int | None
    kernel_sampled: bool | None  # whether the kernel's own code was sampled too
    iterations: int
    threads: int | None
    samples: int  # of the inference in these iterations
    lost: int
    throttled: int
    threads_missed: int
    coverage: list[Coverage]
    module_share: float | None  # of the inference's samples: within a module of the model, leaf or not
    named_share: float | None  # of them: in code that has a name
    wait_share: float | None  # of them: in the OpenMP runtime
    unknown: int  # of them: in memory that belongs to no known file
    cpi_provenance: str | None  # "measured": counters read with each sample; "instrumented": see ``cpi_meaning``
    cpi_meaning: str | None
    cpi_missing: Missing | None
    cpi_left_out: list[str]  # reasons of layers without a CPI that are not in that of types and of the inference either
    mpki_missing: Missing | None
    instructions_from: str | None  # the pass that counted kernels' instructions
    reference_ghz: float | None
    core_ghz: float | None  # that CPI by processor time is in; null: not probed, it is in the reference frequency
    core_ghz_error: float | None  # half the range of nine probes in ten
    waiting: list[Waiting]  # in all, then by cause, most first; empty where none was met
    few_samples: int  # with fewer, a layer or kernel gets no CPI and no MPKI
    few_for_shares: int  # with fewer, a layer gets no wait share and no efficiency
    few_for_balance: int  # with fewer that found the threads busy, a layer gets no imbalance
    least_share: float  # a layer's kernels with a smaller share of its time are not listed, but for the whole's
    least_share_of_whole: (
        float  # kernels with a smaller one are not listed; others are, in every layer they were met in
    )
    notes: list[str]


class Kernels(Sampling, kw_only=True, frozen=True):
    """What was found."""

    layers: list[SampledLayer]  # most processor time first
    kernels: list[SampledKernel]  # of the whole, then of each layer; most processor time first

    def with_names(self) -> list[SampledKernel]:
        """``kernels``, each with its full name."""
        names = _names_of_whole(self.kernels)
        return [
            msgspec.structs.replace(one, full_name=names.get(_name(one))) if one.full_name is None else one
            for one in self.kernels
        ]


PART: Final = Kernels


def build(analysis: RunAnalysis) -> Kernels | Unavailable:
    """From the pass with the most samples."""
    taken = analysis.sampled
    if taken is None:
        return no_samples(analysis)
    from hwprof.analysis import parallelism, sampled_pass
    from hwprof.analysis.kernel_roofline import of_kernels
    from hwprof.analysis.sampled_layers import layer_rows
    from hwprof.analysis.samples import FEW_SAMPLES

    under = of_kernels(analysis)
    cpi = analysis.kernel_cpi
    by_time = cpi.by_time if cpi is not None else None
    provenance = MEASURED if taken.measured else INSTRUMENTED if cpi is not None else None
    detail, event = taken.detail, str(taken.inside["event"][0])
    return Kernels(
        pass_name=taken.record.name,
        event=event,
        frequency_hz=detail.frequency_hz if detail else None,
        kernel_sampled=detail.kernel if detail else None,
        iterations=len(taken.iterations),
        threads=taken.threads,
        samples=taken.inside.height,
        lost=detail.lost if detail else 0,
        throttled=detail.throttled if detail else 0,
        threads_missed=detail.threads_missed if detail else 0,
        coverage=[Coverage(**row) for row in taken.coverage()],
        **taken.shares(),
        unknown=taken.unknown(),
        cpi_provenance=provenance,
        cpi_meaning=_meaning(provenance, cpi),
        cpi_missing=None if provenance else _no_cpi(event),
        cpi_left_out=list(OTHER_WORK),
        mpki_missing=None if taken.counts_misses else _no_mpki(),
        instructions_from=cpi.pass_name if cpi is not None else None,
        reference_ghz=cpi.reference_ghz if cpi is not None else None,
        core_ghz=cpi.clock.ghz if cpi is not None and cpi.clock.probed else None,
        core_ghz_error=cpi.clock.error_ghz if cpi is not None else None,
        waiting=[Waiting(**row) for row in taken.waiting()],
        few_samples=FEW_SAMPLES,
        few_for_shares=sampled_pass.FEW_FOR_SHARES,
        few_for_balance=parallelism.FEW_FOR_BALANCE,
        least_share=sampled_pass.LEAST_SHARE,
        least_share_of_whole=sampled_pass.LEAST_SHARE_OF_WHOLE,
        notes=_notes(taken),
        layers=[_layer(row) for row in layer_rows(taken, by_time)],
        kernels=_named_once([_kernel(row, under) for row in taken.kernel_rows(by_time)]),
    )


def _name(kernel: SampledKernel) -> tuple[str, str]:
    return kernel.kernel, kernel.library


def _names_of_whole(kernels: Sequence[SampledKernel]) -> dict[tuple[str, str], str | None]:
    return {_name(one): one.full_name for one in kernels if one.layer is None}


def _named_once(kernels: Sequence[SampledKernel]) -> list[SampledKernel]:
    """A template's full name is a line long, and is that of every layer's row."""
    names = _names_of_whole(kernels)
    return [
        msgspec.structs.replace(one, full_name=None)
        if one.layer is not None and one.full_name == names.get(_name(one))
        else one
        for one in kernels
    ]


def _layer(row: dict[str, Any]) -> SampledLayer:
    threads = [SampledThread(**thread) for thread in row.pop("threads")]
    operators = [SampledOperator(**operator) for operator in row.pop("operators")]
    return SampledLayer(**row, threads=threads, operators=operators)


def _kernel(row: dict[str, Any], under: dict[Key, kernel_roofline.CodeUnderRoofs]) -> SampledKernel:
    key = (row["layer"], row["kernel"], row["library"], row["domain"])
    return SampledKernel(**row, roofline=of_code(under.get(key)))


def no_samples(analysis: RunAnalysis) -> Unavailable:
    """The sampler's own word, where it ran and gave nothing; that its samples lie where no figure is made of them."""
    said = [one for record in analysis.run.manifest.passes for one in record.collectors if one.name == SAMPLER]
    said_why = next(((one.reason, one.remedy) for one in said if one.state != "ran" or one.reason), None)
    if said_why is not None:
        return Unavailable(said_why[0] or "it gives no reason", said_why[1])
    if not said and TRACE in analysis.records:
        chosen = any(word.partition("=")[0] == "--collectors" for word in analysis.run.manifest.command)
        return Unavailable(
            "the sampler was left out", f"collect without {'--collectors' if chosen else '--no-sampler'}"
        )
    if analysis.samples_taken:
        name, number = max(analysis.samples_taken.items(), key=lambda pair: pair[1])
        reason = f"all {number:,} samples of pass {name} lie outside of the inference in timed iterations"
        return Unavailable(reason, "a higher --frequency, or --sample-passes measure and more --iterations")
    ended = next((one for one in analysis.run.manifest.passes if one.status == "interrupted" and not one.kept), None)
    if ended is not None:
        return Unavailable(f"pass {ended.name} was interrupted", AGAIN)
    return NO_SAMPLES


def _meaning(provenance: str | None, cpi: KernelCpi | None) -> str | None:
    if provenance == MEASURED:
        return "cycles / instructions, counted by hardware between two samples of a thread, at the later one"
    if cpi is None:
        return None
    clock = "the core's, probed between iterations" if cpi.clock.probed else "reference frequency"
    return (
        f"CPU time at work x {cpi.clock.ghz:.4g} GHz ({clock}) / instructions of pass {cpi.pass_name}"
        " in the same kernels and leaf layers, all threads; a layer's no more than the calling thread took where no"
        " operators were recorded"
    )


def _no_cpi(event: str) -> Missing:
    if event == "cpu-clock":
        reason = "samples without counters, and no pass counted the kernels' instructions"
        return Missing(reason, "collect with --counters perf,instrumented", what="cpi")
    return Missing("no instructions counted between samples", what="cpi")


def _no_mpki() -> Missing:
    return Missing("no last-level cache misses counted between samples", what="llc_mpki")


def _notes(taken: SampledPass) -> list[str]:
    """That these are few, and what brings more."""
    if taken.inside.height >= FEW_IN_ALL:
        return []
    from hwprof.analysis.more_samples import faster

    number = taken.inside.height
    some = f"{number} sample{'' if number == 1 else 's'}"
    return [f"only {some}, wide intervals. Try: {faster(taken)}, or --sample-passes measure"]
