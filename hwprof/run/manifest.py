"""run.json: what ran, where, how, and what each collector reports beside its rows."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from hwprof.run import details, digests, upgrade
from hwprof.run.details import DetailT
from hwprof.run.notes import Note
from hwprof.run.peaks import Peaks
from hwprof.run.roles import Role
from hwprof.run.trials import Trials
from hwprof.run.variants import VariantRecord
from hwprof.unavailable import Unavailable

SCHEMA_VERSION: Final = 2
"""Of the run directory: the manifest and the tables."""

Version = Annotated[int, msgspec.Meta(ge=1)]

PassStatus = Literal["running", "completed", "failed", "interrupted"]
UNFINISHED: Final = "still being measured, or was killed"
"""What a record says that nobody has closed."""
Amount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
"""A number of things that tables keep in 32 bits."""
Moment: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""By any clock, in ns: of two of them sum and difference have 64 bits."""
Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""Between two clocks, in ns."""
CollectorState = Literal["ran", "unavailable", "failed", "off"]


class Cache(msgspec.Struct, frozen=True):
    """One cache level as one processor sees it."""

    level: int
    kind: Literal["data", "instruction", "unified"]
    size_bytes: int
    ways: int | None = None
    line_bytes: int | None = None
    shared_by: int = 1  # logical processors


class CoreKind(msgspec.Struct, frozen=True):
    """Cores of one kind: all of them, except on hybrid processors."""

    pmu: str | None  # their counters' name under /sys/bus/event_source/devices; None: the kernel shows none
    microarchitecture: str | None  # the event catalogue's file, "amd-zen4"; None: it knows no such processor
    cpus: tuple[int, ...]  # logical processors


class Machine(msgspec.Struct, frozen=True):
    """The machine that a run was measured on. ``None`` is: the machine does not tell."""

    hostname: str
    architecture: str  # x86_64, aarch64
    processor: str  # the marketing name
    vendor: str
    family: int | None
    model: int | None
    stepping: int | None
    logical_processors: int
    physical_cores: int | None
    sockets: int | None
    caches: tuple[Cache, ...]
    memory_bytes: int
    kernel: str
    system: str  # "Debian GNU/Linux 12 (bookworm)"
    hypervisor: str | None
    governor: str | None
    pmus: tuple[str, ...]  # names under /sys/bus/event_source/devices
    has_core_pmu: bool  # a hardware counter could be opened and counted
    cores: tuple[CoreKind, ...] = ()  # by PMU type; the kind that the kernel's general events count on first
    tick_ns: int | None = None  # between two ticks of the kernel's clock (4 ms: CONFIG_HZ=250)
    cpu_limit: float | None = None  # how many processors' time the control group (container) gets; None: no limit
    siblings: tuple[tuple[int, ...], ...] = ()  # logical processors of each core; none: the kernel does not tell
    nodes: tuple[tuple[int, ...], ...] = ()  # logical processors of each NUMA node
    allowed_processors: int | None = None  # on which hwprof, and what it started, might run (taskset, containers)

    @property
    def usable_processors(self) -> int:
        """How many processors the workload had."""
        return min(self.allowed_processors or self.logical_processors, self.logical_processors)


EventKind = Literal["hardware", "software", "instrumented", "simulated"]
"""Who counts: the processor, the operating system, instrumentation of the code, or a model of the caches."""


class EventInfo(msgspec.Struct, frozen=True):
    """An event as it was counted: what the name means on that machine."""

    name: str
    meaning: str
    unit: str  # "ns" for task-clock, else "1"
    kind: EventKind


class MetricDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A metric as it is computed on that machine. ``formula`` is arithmetic over quoted operands, see
    ``analysis.formulas``: an event's name (its count over all threads), ``event@main``, ``event@workers``, ``time``,
    ``counted-time``, ``threads``, ``macs``, ``bytes``."""

    name: str
    title: str
    unit: str
    digits: int  # decimals that a reader needs
    formula: str
    meaning: str
    group: str = ""  # "cache", "flops", …: what --events calls it
    core: bool = False  # shown (as a dash, with the reason) also where it could not be measured
    caveat: str | None = None
    source: str | None = None  # of the formula


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A program or library that a collector had at work."""

    name: str
    version: str | None = None  # None: it does not say
    command: list[str] = []  # as it was started; empty: it is no program, or was not started
    path: str | None = None  # where the program or library lies
    clock: str | None = None  # the pass's ``ClockRecord`` that its times were converted by; None: it has no clock


class CollectorRecord(msgspec.Struct, kw_only=True):
    """What became of one collector in one pass."""

    name: str
    state: CollectorState
    reason: str | None = None  # why it is unavailable, off or failed
    remedy: str | None = None  # the command that would make it available
    role: Role = Role.OTHER
    options: dict[str, Any] = {}  # those that it was given
    notes: list[Note] = []
    detail: dict[str, Any] = {}  # a ``details.Detail`` as JSON: a third party's own as well
    tools: list[Tool] = []  # that it had at work

    @property
    def unavailable(self) -> Unavailable | None:
        """Why it is unavailable, off or failed; None where it ran."""
        if self.reason is None:
            return None if self.state == "ran" else Unavailable("no reason given", self.remedy)
        return Unavailable(self.reason, self.remedy)

    def detail_as(self, kind: type[DetailT]) -> DetailT | None:
        """What it reports of its data, where that is of this kind. Raises ``msgspec.ValidationError``."""
        if self.detail.get("kind") != kind.__struct_config__.tag:
            return None
        return msgspec.convert(self.detail, kind)


class Disturbance(msgspec.Struct, frozen=True):
    """What others did to an iteration, by the kernel's own account. ``None``: this kernel does not tell."""

    elapsed_ns: int
    preemptions: int  # involuntary context switches of the process's threads
    waited_ns: int | None  # how long its threads were ready to run and had no processor, summed over them
    stolen_ns: int | None  # that the hypervisor gave to others, over all processors; told in ticks of usually 10 ms
    own_ns: int = 0  # CPU time of processes that collectors had at work beside it
    page_faults: int | None = None  # of the process, its collectors' included; None: by an older version
    processors: int | None = None  # that its calling thread might use, at its begin or end; None: by an older version


class IterationRecord(msgspec.Struct, frozen=True):
    """One iteration. Stage edges are always counted; ``layers_counted`` is false where layers were only timed.

    Reading every thread's counters at every leaf edge costs time, so iterations that only time their layers alternate
    with ones that count them: times come from the first kind, counts from the second, and the two kinds side by side
    are the measured cost of counting.
    """

    index: Amount
    warmup: bool
    event_set: Amount | None  # None: no counter collector ran
    layers_counted: bool
    alone_for: str | None = None  # the one collector that looked, when the others had stopped; marked as warm-up
    bare: bool = False  # no layer was watched in it; marked as warm-up
    disturbance: Disturbance | None = None  # None: it was not done to its end, or by an older version
    outputs: str | None = None  # a checksum of what came out, where it is compared with another pass's


class ClockRecord(msgspec.Struct, frozen=True):
    """How a foreign clock was brought onto CLOCK_MONOTONIC: monotonic = foreign + offset + drift·(foreign − at)."""

    name: str
    offset_ns: Offset
    drift: float
    at_ns: Offset
    error_ns: Moment


class PrecisionRecord(msgspec.Struct, frozen=True):
    """How well the layers' times were known when a pass ended that goes on until they are known well enough. Errors are
    half of the 95% interval of a median, of the median."""

    wanted: float
    error: float  # of the layer that is known worst
    layer: str
    layers: Amount  # that have time enough to be asked for
    iterations: Amount  # that timed them


class ClockSnapshot(msgspec.Struct, frozen=True):
    """The kernel's clocks at (nearly) one moment, in nanoseconds."""

    boottime_ns: Moment
    monotonic_ns: Moment
    monotonic_raw_ns: Moment
    realtime_ns: Moment


class PassRecord(msgspec.Struct, kw_only=True):
    """One pass: a process that did the workload under a set of collectors."""

    name: str
    status: PassStatus = "running"
    reason: str | None = None  # of a failure; of a completed one: why it ended before all was done
    pid: int | None = None
    main_tid: int | None = None
    begin_ns: Moment | None = None
    end_ns: Moment | None = None
    measured_ns: Moment | None = None  # wall time of all iterations after warm-up
    stolen_ns: int | None = None  # processor time that the hypervisor took during them, over all processors
    others_ns: int | None = None  # that other processes and the hypervisor took during them; None: not told
    throttled: int | None = None  # how often the control group was stopped at its limit during them; None: no limit
    throttled_ns: int | None = None  # for how long in all, summed over processors
    collectors: list[CollectorRecord] = []
    events: list[EventInfo] = []
    event_sets: list[list[str]] = []
    metrics: list[MetricDefinition] = []  # what can be derived from the events of this machine's processor
    iterations: list[IterationRecord] = []
    clocks: list[ClockRecord] = []
    precision: PrecisionRecord | None = None  # None: as many iterations, or as long, as it was told
    kept: bool = False  # interrupted, and what was counted by then is in the tables
    environment: dict[str, str] = {}  # what the worker's was given beside the user's
    threads: Amount | None = None  # where the pass used another number than the workload's record says
    instruction_set: str | None = None  # what the environment held the kernels to; None: the machine's own
    fingerprint: dict[str, str] = {}  # what passes must have in common to be joined: inputs, weights, threads, …
    times_from: str | None = None  # the pass that did the same work uninstrumented: times belong to this one's counts
    laid_out: bool = False  # how long layers took is known, and not when: their spans stand one after the other

    @property
    def why_unfinished(self) -> str | None:
        """Why it is not completed, where that is known. One that was killed has the record of one that still runs."""
        return self.reason or (UNFINISHED if self.status == "running" else None)


class VideoRecord(msgspec.Struct, kw_only=True, frozen=True):
    """What a video, or a camera, says of itself."""

    width: int  # of a frame, pixels
    height: int
    fps: float | None = None  # frames a second; null: it does not say
    frames: Amount | None = None  # counted where all were decoded, else by its header; null: not known, or a camera's
    codec: str | None = None  # four letters, "h264"; null: it does not say


class WorkloadRecord(msgspec.Struct, kw_only=True):
    """What was measured."""

    name: str  # "yolov7"
    kind: str  # "yolo", "module", …
    weights: str  # "random (seed 0)", or the checkpoint's path
    weights_unsound: str | None = None  # what is wrong with those of a file; null: nothing that was looked for
    parameters: int | None  # null: some weights cannot be read, a note says which
    parameters_unfused: int | None = None
    fused: bool = False
    threads: Amount
    batch: int
    input_shapes: list[str] = []
    sources: list[str] = []  # of an iteration
    images_there: Amount | None = None  # of which those were taken; null: all of them
    more_pixels: float | None = None  # by which share those have more pixels on average than all there; null: not known
    video: VideoRecord | None = None  # that the sources are frames of; null: they are images
    forwards: Amount | None = None  # of an iteration
    variant: VariantRecord | None = None  # null: the model as it is
    results: list[str] = []  # one line an image: "bus.jpg 640x480: 12 boxes"
    notes: list[str] = []
    options: dict[str, Any] = {}


class Manifest(msgspec.Struct, kw_only=True):
    """run.json."""

    schema_version: Version = SCHEMA_VERSION
    hwprof_version: str
    versions: dict[str, str] = {}  # torch, ultralytics, python, …
    name: str
    created: str  # ISO 8601 with offset
    command: list[str]
    machine: Machine
    clock: ClockSnapshot
    workload: WorkloadRecord | None = None  # known once the first worker has built it
    passes: list[PassRecord] = []
    peaks: Peaks | None = None  # what the machine can do at most; null: nobody measured it
    asked: dict[str, Any] = {}  # the ``WorkloadSpec`` as JSON; empty: an older version's run
    folder: str = ""  # from which: where paths of ``asked`` begin, and a user's model is found
    trials: Trials | None = None  # remedies that were tried; null: none
    tables: dict[str, list[str]] = {}  # by name, the digests of what its file may hold; older runs have none


MANIFEST_FILE: Final = "run.json"


def encode(manifest: Manifest) -> bytes:
    """The manifest as indented JSON, sealed."""
    return digests.sealed(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


class Written(msgspec.Struct):
    """By whom a manifest was written: what every version of it has."""

    schema_version: Version = 1
    hwprof_version: str = "of another version"


def decode_version(data: bytes) -> Written:
    """Of a manifest of any version, whatever else it holds; raises as ``decode``."""
    return msgspec.json.decode(data, type=Written)


def decode(data: bytes) -> Manifest:
    """The manifest from JSON, of this version or of an older one; raises ``msgspec.DecodeError``,
    ``msgspec.ValidationError`` or ``digests.BrokenSealError``, all of them a ``ValueError``."""
    digests.require_unbroken(data)
    raw = msgspec.json.decode(data)
    _check_numbers(raw)
    manifest = msgspec.convert(upgrade.upgraded(raw), Manifest, strict=True)
    for record in manifest.passes:
        for collector in record.collectors:
            details.check(collector.detail)
    return manifest


def _check_numbers(raw: Any) -> None:
    """JSON bounds no number, and Python keeps any; what is made of them does not."""
    waiting = [raw]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (dict, list)):
            waiting.extend(one.values() if isinstance(one, dict) else one)
        elif isinstance(one, int) and not -(1 << 63) <= one < 1 << 64:
            raise msgspec.ValidationError("it holds a number of more than 64 bits")
