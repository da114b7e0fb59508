"""What a report holds. Terminal, JSON and CSV are made from this and from nothing else.

Times are nanoseconds; null is: not measured (``not_measured`` and ``metrics`` say why).
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from hwprof.analysis.cpu_time import Closure
from hwprof.analysis.flop_check import FlopCheck
from hwprof.analysis.missing import Missing
from hwprof.report.document.kernels_schema import Sampled
from hwprof.report.document.primitives_schema import Primitives
from hwprof.report.document.threads_schema import Waiting
from hwprof.run.manifest import ClockRecord, CollectorRecord, Machine, PassStatus, WorkloadRecord

DOCUMENT_VERSION: Final = 1


class RunInfo(msgspec.Struct, kw_only=True, frozen=True):
    """Which run this is."""

    name: str
    path: str
    created: str
    command: list[str]
    hwprof_version: str
    versions: dict[str, str]


class PassInfo(msgspec.Struct, kw_only=True, frozen=True):
    """One pass and its iterations: ``timed`` only timed their layers, ``counted`` read counters at layer edges; those
    ``alone`` for one collector each (its name) came when all else was measured."""

    name: str
    status: PassStatus
    reason: str | None
    seconds: float | None
    warmup: int
    timed: int
    counted: int
    alone: list[str]
    event_sets: list[list[str]]
    collectors: list[CollectorRecord]
    clocks: list[ClockRecord]


class NotMeasured(msgspec.Struct, kw_only=True, frozen=True):
    """A source that gave nothing, or less than it could."""

    what: str
    state: str
    reason: str
    remedy: str | None
    passes: list[str]


class Times(msgspec.Struct, kw_only=True, frozen=True):
    """Statistics of a repeated time; the spread is the median absolute deviation. Provenance: measured (clock)."""

    repetitions: int
    median_ns: float
    mad_ns: float
    mean_ns: float
    std_ns: float | None
    min_ns: float
    max_ns: float


class Counter(msgspec.Struct, kw_only=True, frozen=True):
    """An event in one iteration: medians over iterations. Where ``running_share`` is below 1 the kernel multiplexed
    the counter, and the values are scaled up by enabled / running time."""

    value: float | None  # over all threads
    mad: float | None
    main: float | None  # the thread that called
    workers: float | None  # all others
    running_share: float
    iterations: int
    provenance: str


class Event(msgspec.Struct, kw_only=True, frozen=True):
    """An event that was counted, and what its name means on that machine."""

    name: str
    meaning: str | None
    unit: str
    kind: str | None
    provenance: str
    running_share: float  # the lowest of all owners


class MetricInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A metric: how it is made on that processor, and why it is missing where it is."""

    name: str
    title: str
    unit: str
    formula: str
    group: str  # what --metrics calls it together with its kin
    meaning: str
    caveat: str | None
    reference: str | None  # where the formula is from
    digits: int
    core: bool
    scope: Literal["threads", "machine"]  # machine: other programs are in it
    provenance: Literal["derived", "modelled"]
    sources: list[str]  # the provenances of what it is made of
    running_share: float
    same_iterations: bool  # false: no iteration counted all of its events, so it is made of medians over different ones
    missing: Missing | None


class ThreadParts(msgspec.Struct, kw_only=True, frozen=True):
    """A metric of the calling thread and of all others."""

    main: float | None
    workers: float | None


class Figures(msgspec.Struct, kw_only=True, frozen=True):
    """What stages, layers and layer types have in common."""

    share: float | None  # of the inference; of a stage: of the iterations
    counters: dict[str, Counter]
    metrics: dict[str, float | None]
    by_thread: dict[str, ThreadParts]  # the metrics that have parts by thread


class Stage(Figures, kw_only=True, frozen=True):
    """A stage over the timed iterations. Its share is part of the enclosing stage's where ``inside`` names one."""

    name: str
    inside: str | None
    calls: int | None
    total_ns: int
    call: Times | None  # of one call


class Layer(Figures, kw_only=True, frozen=True):
    """A leaf layer; its figures are sums over the calls of one iteration."""

    order: int | None
    index: int | None
    path: str
    type: str | None
    input_shapes: str | None
    output_shapes: str | None
    more_shapes: int | None
    parameters: int | None
    macs: int | None
    bytes: int | None
    calls: float | None  # as measured; null: never called
    time: Times | None
    counting_ratio: float | None  # its time in iterations that count over that in those that only time
    trace_ratio: float | None  # its time in the trace pass over that in the measure pass
    flops: FlopCheck | None  # counted against analytic; of the whole: the layers that have MACs


class LayerType(Figures, kw_only=True, frozen=True):
    """All leaf layers of one type."""

    type: str
    layers: int | None
    parameters: int | None
    macs: int | None
    bytes: int | None
    calls: float | None
    time: Times | None


class Operator(msgspec.Struct, kw_only=True, frozen=True):
    """A framework operator with one combination of input shapes, in the trace pass."""

    name: str
    input_shapes: str | None
    count: int
    self_ns: int
    inclusive_ns: int
    share: float | None  # of the self time of all operators


class Energy(msgspec.Struct, kw_only=True, frozen=True):
    """Energy of a zone (of the whole machine) during a stage, over the timed and counting iterations. Measured."""

    zone: str
    stage: str
    windows: int
    seconds: float
    joules: float
    joules_error: float | None
    watts: float | None
    watts_error: float | None
    idle_watts: float | None
    joules_above_idle: float | None
    joules_per_iteration: float


class Traffic(msgspec.Struct, kw_only=True, frozen=True):
    """What the whole machine's memory controllers moved while a layer or stage ran. Measured; other programs' traffic
    is in it. The rate is null where the readings around the windows' edges leave too much of it open."""

    series: str
    kind: Literal["stage", "layer", "layer type"]
    owner: str
    windows: int
    seconds: float
    bytes: float
    bytes_error: float
    gbytes_per_s: float | None
    gbytes_per_s_error: float | None


class Cores(msgspec.Struct, kw_only=True, frozen=True):
    """The cores of one kind, and what the event catalogue calls it."""

    pmu: str | None
    microarchitecture: str | None  # the catalogue's file; null: it does not know this processor
    name: str | None
    cpus: list[int]


class Effect(msgspec.Struct, kw_only=True, frozen=True):
    """How much slower the observed was than the base: of the whole inference, and the layers' quartiles."""

    base_ns: float
    observed_ns: float
    base_iterations: int
    observed_iterations: int
    ratio: float
    layers_p25: float | None
    layers_median: float | None
    layers_p75: float | None


class ObserverEffect(msgspec.Struct, kw_only=True, frozen=True):
    """What measuring did to the measured. ``counting``: iterations that count layers against those that only time them.
    ``trace``: the trace pass against the measure pass."""

    counting: Effect | None
    trace: Effect | None


class Hottest(msgspec.Struct, kw_only=True, frozen=True):
    """The layers that the terminal shows, by path."""

    sort: str
    top: int | None
    layers: list[str]


class Kernel(msgspec.Struct, kw_only=True, frozen=True):
    """A function, or a JIT kernel, in one layer or in the whole (``layer`` is null); what it did itself."""

    layer: str | None
    kernel: str
    library: str  # the file's name; "jit"; "unknown"
    domain: str  # what its library is there for: jit, torch, openmp, python, system, other
    value: float  # instructions of one iteration
    share: float | None  # of the layer's instructions
    counters: dict[str, float]  # events of the pass
    metrics: dict[str, float | None]  # what follows from them; cycles per instruction: ``Sampled``
    provenance: dict[str, str]  # of each


class Followed(msgspec.Struct, kw_only=True, frozen=True):
    """What a pass counted by following the code. Its layers' times are those of ``times_from``, where the same work was
    done unfollowed; ``apart`` says why there are none."""

    name: str
    status: PassStatus
    times_from: str | None
    apart: str | None
    instruction_set: str | None  # what both passes were held to; null: the machine's own
    threads: int | None
    environment: dict[str, str]
    notes: list[str]
    events: list[Event]
    metrics: list[MetricInfo]
    layers: list[Layer]
    unattributed: Layer | None
    inference: Layer | None
    kernels: list[Kernel]  # of the whole and of each layer, the largest first


class Document(msgspec.Struct, kw_only=True, frozen=True):
    """The whole report."""

    schema_version: int = DOCUMENT_VERSION
    run: RunInfo
    machine: Machine
    cores: list[Cores]
    workload: WorkloadRecord | None
    passes: list[PassInfo]
    figures_from: str | None  # the pass that times and counts are from
    whole: str  # what layers add up to: "inference" or "iteration"
    not_measured: list[NotMeasured]
    notes: list[str]
    observer_effect: ObserverEffect
    closure: Closure | None
    events: list[Event]
    metrics: list[MetricInfo]
    stages: list[Stage]
    layers: list[Layer]
    unattributed: Layer | None
    inference: Layer | None
    layer_types: list[LayerType]
    operators: list[Operator]
    operators_coverage: float | None  # the share of the trace pass's time that lies in operators
    energy: list[Energy]
    traffic: list[Traffic]
    followed: list[Followed]
    sampled: Sampled | None  # where a pass took samples
    waiting: Waiting | None  # where these tell of the thread that calls the model
    primitives: Primitives | None  # where oneDNN reported what it executed
    hottest: Hottest


def encode(document: Document) -> bytes:
    """The document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def decode(data: bytes) -> Document:
    """The document from JSON; raises ``msgspec.ValidationError``."""
    return msgspec.json.decode(data, type=Document)


def json_schema(kind: type[msgspec.Struct] = Document) -> dict[str, Any]:
    """The JSON schema (2020-12) that documents, or parts of them, fulfil."""
    schema = msgspec.json.schema(kind)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "hwprof report", **schema}
