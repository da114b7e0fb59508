"""What a report says of samples: which code took the processor time, in the whole and in each layer.

Processor times are those of one iteration, over all threads. Intervals are 95%, of the sampling alone. Null is: not
measured, or not known from so few samples.
"""

from __future__ import annotations

import msgspec

from hwprof.analysis.missing import Missing


class Coverage(msgspec.Struct, kw_only=True, frozen=True):
    """Samples with one kind of owner."""

    where: str  # "layer", "unattributed": in the inference and between layers, "outside" of the inference
    samples: int
    cpu_ns: float
    share: float | None  # of the inference's; null outside of it


class SampledFigures(msgspec.Struct, kw_only=True, frozen=True):
    """What layers and kernels have in common."""

    samples: int
    cpu_ns: float
    share: float | None
    share_low: float | None
    share_high: float | None
    cpi: float | None
    llc_mpki: float | None


class SampledThread(msgspec.Struct, kw_only=True, frozen=True):
    """A thread in one layer: at work, in the OpenMP runtime, off its processor."""

    tid: int
    name: str | None
    role: str | None
    samples: int
    busy_ns: float
    wait_ns: float
    off_ns: float
    preempted_ns: float  # of ``off_ns``: it would have gone on


class SampledOperator(msgspec.Struct, kw_only=True, frozen=True):
    """A framework operator that was running (the innermost one) when a layer's samples were taken."""

    operator: str | None  # null: none was
    samples: int
    share: float  # of the layer's processor time


class SampledLayer(SampledFigures, kw_only=True, frozen=True):
    """A leaf layer, or ``unattributed``. The share is of the inference's processor time."""

    path: str
    wait_share: float | None  # of its processor time: in the OpenMP runtime
    named_share: float | None  # of its processor time: in code that has a name
    efficiency: float | None  # busy time over threads x wall time
    imbalance: float | None  # the busiest thread's busy time over the mean, minus 1
    off_ns: float  # off a processor, over the threads that work in the inference
    preempted_ns: float
    threads: list[SampledThread]
    operators: list[SampledOperator]  # most first; empty where no operators were recorded in that pass


class SampledKernel(SampledFigures, kw_only=True, frozen=True):
    """A function, or the JIT kernels of one name, in a layer or in the whole (``layer`` is null); what it did itself.
    The share is of the layer's processor time, or of the inference's."""

    layer: str | None
    kernel: str
    full_name: str | None  # where it says more; of several with one short name, that with the most samples
    pieces: int  # how many pieces of code have that name
    library: str  # the file's name; "jit"; "[kernel]"; "[unknown]"
    domain: str  # what its library is there for: jit, torch, openmp, python, system, kernel, other
    cpi_low: float | None  # null where cycles were counted: then nothing tells
    cpi_high: float | None
    instructions: float | None  # between samples, or as ``Sampled.instructions_from`` counted them in it
    layers: int | None  # of the whole: in how many layers it was met
    share_of_kernel: float | None  # of a layer: which part of the kernel's processor time this layer has


class Sampling(msgspec.Struct, kw_only=True, frozen=True):
    """How it was sampled: of the passes the one with the most samples of timed iterations."""

    name: str
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
    mpki_missing: Missing | None
    instructions_from: str | None  # the pass that counted kernels' instructions
    reference_ghz: float | None
    few_samples: int  # with fewer, a layer or kernel gets no CPI and no MPKI
    few_for_balance: int  # with fewer, a layer gets no wait share, efficiency and imbalance
    least_share: float  # a layer's kernels with a smaller share of its time are not listed
    least_share_of_whole: float
    notes: list[str]


class Sampled(Sampling, kw_only=True, frozen=True):
    """What was found."""

    layers: list[SampledLayer]  # most processor time first
    kernels: list[SampledKernel]  # of the whole, then of each layer; most processor time first
