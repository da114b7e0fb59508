"""What collectors report of their data for machines: one struct for each kind of data, told apart by its ``kind``.

Whoever reads a run asks a record for the kind that it needs (``record.detail_as(SamplingDetail)``), whichever collector
brought it. A collector's own struct derives from ``Detail``, or from a kind that stands here if it has more to say.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, TypeVar, get_args

import msgspec

from hwprof.unavailable import Unavailable


class Detail(msgspec.Struct, kw_only=True, tag_field="kind", tag=str.lower):
    """The base of all; in JSON ``kind`` says which one it is: the ``tag`` of the class, or its name in lower case."""


DetailT = TypeVar("DetailT", bound=Detail)


class OwnFiles(msgspec.Struct):
    """What a detail of any kind may name: the tool's own files, in the collector's raw folder."""

    file: str | None = None
    files: list[str] = []
    html: str | None = None


class GroupDetail(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Events that are counted together, and how many of a PMU's general counters they take."""

    pmu: str | None
    events: list[str]
    general_counters: int | None = None
    of: int | None = None


class CountingDetail(Detail, kw_only=True, tag="counting"):
    """Event counts by thread. ``unavailable``: events and metrics that were asked for and not counted."""

    hardware: list[str] = []
    software: list[str] = []
    kernel: bool = True  # whether the kernel's code is counted
    unavailable: dict[str, Unavailable] = {}
    threads: int | None = None
    edges: int | None = None


UNSAMPLED_SHARE: Final = 0.02
"""Of the processor time, for which no sample stands, that matters: intervals hold for so much more."""


class SamplingDetail(Detail, kw_only=True, tag="samples"):
    """Samples of code: how they were taken, and what is known of those that are missing."""

    event: str
    frequency_hz: int
    kernel: bool  # whether the kernel's code is sampled
    precise: int = 0  # of perf_event_attr: how close a sample lies to its event
    depth: int = 0
    groups: list[GroupDetail] = []
    samples: int = 0
    threads: int = 0
    represented_share: float | None = None  # of what the threads did, for which samples stand
    unsampled_of_new: bool = False  # whether the rest is mostly what threads did before they could be sampled
    unsampled_threads: int = 0
    busy_threads: int = 0
    sample_cost_ns: int | None = None
    reasons: bool = True  # whether off-CPU reasons were recorded
    wakers: bool = False  # whether it was recorded who woke whom
    lost: int = 0
    throttled: int = 0
    silent: list[str] = []  # events between samples that never moved
    torn_bytes: int = 0
    threads_missed: int = 0
    record_bytes: int = 0
    ring_bytes: int = 0
    jit_kernels: int = 0
    named: int = 0
    unnamed: int = 0
    unknown: int = 0
    unknown_callers: int = 0
    callers: int = 0


PACKAGE: Final = "package"
"""A zone of energy: a processor's package is ``package-0``, a part of it ``package-0/dram``."""

PLATFORM: Final = "psys"
"""The zone of the whole machine, where it has one."""

METER: Final = "meter"
"""The zone of a power meter of the user's."""


class EnergyDetail(Detail, kw_only=True, tag="energy"):
    """Energy counters that were sampled."""

    zones: list[str]
    period_ms: float | None = None  # between two readings
    refresh_ms: dict[str, float] = {}  # of a zone, how long a value stays, where it was seen to change
    reading_us: float | None = None  # processor time that reading all zones once takes
    late_ms: dict[str, float] = {}  # of a zone, by how much the times of its readings may be off
    of_power: list[str] = []  # zones whose readings were watts at moments, and are summed up here


class MemoryDetail(Detail, kw_only=True, tag="memory"):
    """How often the memory was sampled, and the most that was resident at any time."""

    period_ms: float
    peak_rss_bytes: int | None = None
    page_bytes: int | None = None


class AllocatorDetail(Detail, kw_only=True, tag="allocator"):
    """Who gives memory: ``glibc``, ``jemalloc``, ``tcmalloc``."""

    allocator: str
    reading_us: float
    huge_pages: str | None = None  # when the kernel gives them: always, madvise, never
    settings: dict[str, str] = {}  # the allocator's, of the environment


class DramDetail(Detail, kw_only=True, tag="dram"):
    """DRAM traffic of the whole machine. ``events``: of each series, those that it is the sum of."""

    pmus: list[str] = []
    series: list[str] = []
    counters: int = 0
    events: dict[str, list[str]] = {}
    period_ms: float | None = None
    reading_us: float | None = None


class PrimitivesDetail(Detail, kw_only=True, tag="primitives"):
    """A library's primitives, as it reported them itself."""

    file: str
    primitives: int
    not_understood: int = 0
    version: str | None = None
    instruction_set: str | None = None
    machine_flags: list[str] = []
    restricted_to: str | None = None  # the setting that keeps the library from newer instructions


class CoreClockDetail(Detail, kw_only=True, tag="core_clock"):
    """The core's frequency by instructions of known latency: rows of ``series``."""

    series: str
    probes: int
    chains_apart: float  # by how much two kinds of chains differ, relative
    reference_ghz: float


class PythonStacksDetail(Detail, kw_only=True, tag="python_stacks"):
    """Looks at the stacks of Python's functions: rows of ``python_frames``."""

    rate_hz: float  # how often somebody looked, on average
    frames: int
    clock: str | None = None  # the name of the one that tells when
    stacks: int | None = None  # that were seen: one of each thread and look; None: nobody says
    failed_looks: int | None = None  # each of all threads; a stack stays as it was until the next that succeeds
    failed_share: float | None = None  # of all looks
    behind_s: float | None = None  # how late one was at most, 0: by no more than a second; None: nobody says
    refused_frames: int = 0  # left out: their name, thread or times are none
    unknown_lines: int = 0  # frames whose line is none: 0
    deep_frames: int = 0  # left out: so many others call them
    profiler_paths: list[str] = []  # files and folders of hwprof's own code, but for what it runs as the pipeline
    framework_paths: list[str] = []  # of torch


class CallsDetail(Detail, kw_only=True, tag="calls"):
    """Calls of Python's functions. ``files``: the tool's own, in the collector's raw folder."""

    version: str
    iterations: int
    files: list[str] = []
    profiler_paths: list[str] = []
    framework_paths: list[str] = []


class LineCostsDetail(Detail, kw_only=True, tag="line_costs"):
    """Costs of Python's lines. ``file`` and ``html``: the tool's own, in the collector's raw folder."""

    version: str
    command: list[str]
    elapsed_s: float  # that was profiled
    samples: int  # of the processor, that have a line
    profiler_paths: list[str] = []
    framework_paths: list[str] = []
    file: str
    html: str | None = None


class InstrumentedDetail(Detail, kw_only=True, tag="instrumented"):
    """Counts of instrumented code. ``reference_ghz``: of the clock that CPI of such counts is in."""

    reference_ghz: float | None = None
    start_s: float | None = None
    edges: int | None = None


Known: TypeAlias = (
    CountingDetail
    | SamplingDetail
    | EnergyDetail
    | MemoryDetail
    | AllocatorDetail
    | DramDetail
    | PrimitivesDetail
    | InstrumentedDetail
    | CoreClockDetail
    | PythonStacksDetail
    | CallsDetail
    | LineCostsDetail
)
"""What hwprof itself reads."""

KNOWN: Final = {str(kind.__struct_config__.tag): kind for kind in get_args(Known)}


def as_json(detail: Detail | None) -> dict[str, Any]:
    """A detail as the manifest keeps it."""
    return {} if detail is None else dict(msgspec.to_builtins(detail))


def own_files(detail: dict[str, Any]) -> list[str]:
    """The names of the tool's own files, as a detail of any kind has them; none where that is no list of names."""
    try:
        found = msgspec.convert(detail, OwnFiles)
    except msgspec.ValidationError:
        return []
    return [name for name in (found.file, *found.files, found.html) if name]


def check(detail: dict[str, Any]) -> None:
    """Raises ``msgspec.ValidationError`` for a detail of a kind known here that is not as it should be."""
    kind = KNOWN.get(str(detail.get("kind")))
    if kind is not None:
        msgspec.convert(detail, kind)
