"""What is sampled here: the best sampling event that opens, gets its counters and brings samples, for each kind of
core."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from collectors.sampler.record_decoder import COMMON, Decoder
from collectors.sampler.record_offsets import WORD
from collectors.sampler.ring import map_ring
from collectors.sampler.sampling_events import CPU_CLOCK_EVENT, Opening, SamplingEvent, candidates, most_precise
from collectors.sampler.wakeups import allowed_tracepoint
from collectors.shared.counting.notes import user_code_only
from collectors.shared.event_opening import find_opening
from collectors.shared.processor_affinity import on_processors
from hwprof.collector.contract import Note, NoteKind
from hwprof.errors import UsageError
from hwprof.hardware import perf_event, perf_sampling, permission
from hwprof.hardware.machine import ROOT
from hwprof.hardware.selection import kinds_of_core
from hwprof.run.details import GroupDetail, SamplingDetail
from hwprof.run.manifest import Machine
from hwprof.unavailable import Unavailable

DEFAULT_FREQUENCY_HZ: Final = 999
"""Not in step with the scheduler's tick or with anything else that comes in round numbers."""

DEFAULT_DEPTH: Final = 32
"""Callers that are recorded at most. Libraries built without frame pointers give none anyway."""

RAISE_RATE: Final = "sudo sysctl kernel.perf_event_max_sample_rate=100000"

TRIAL_NS: Final = 30_000_000
"""Processor time after which a sampling event that has brought no sample brings none."""

TRIAL_FREQUENCY_HZ: Final = 999
"""At least: so that a rare sample is not waited for."""

_SAMPLE_WORDS: Final = 16
"""Of a sample without its callers."""

_SWITCHES_A_SECOND: Final = 2000
_SWITCH_WORDS: Final = 5


@dataclass(frozen=True)
class Options:
    """What the user may choose."""

    frequency_hz: int | None = None  # None: the default, or less where the kernel's limit is lower
    depth: int = DEFAULT_DEPTH
    kernel: bool = True  # samples in kernel code too, where that is allowed

    @classmethod
    def of(cls, options: dict[str, Any]) -> Options:
        """From a collector's options: ``frequency``, ``depth``, ``kernel``; those that are missing have their
        defaults. Raises ``UsageError``."""
        frequency_hz = options.get("frequency")
        if frequency_hz is not None and frequency_hz < 1:
            raise UsageError(f"--frequency {frequency_hz}: nothing is sampled less than once a second")
        return cls(frequency_hz, options.get("depth", DEFAULT_DEPTH), options.get("kernel", True))


@dataclass(frozen=True)
class Plan:
    """What is opened on every thread: a sampling event for each kind of core."""

    leaders: tuple[SamplingEvent, ...]
    opening: Opening
    reading: bool  # samples hold the values of the clock's group
    notes: list[Note] = field(default_factory=list)

    @property
    def event(self) -> str:
        """``cycles`` or ``cpu-clock``."""
        return self.leaders[0].name

    @property
    def descriptors(self) -> int:
        """How many a thread takes."""
        return sum(1 + len(leader.members) for leader in self.leaders) + self.opening.beside

    def bytes_a_second(self) -> int:
        """What a thread that is never off its processor writes, at most."""
        members = max(len(leader.members) for leader in self.leaders)
        sample = WORD * (_SAMPLE_WORDS + members + self.opening.max_stack)
        return self.opening.frequency_hz * sample + _SWITCHES_A_SECOND * WORD * _SWITCH_WORDS

    def detail(self) -> SamplingDetail:
        """For the manifest."""
        return SamplingDetail(
            event=self.event,
            frequency_hz=self.opening.frequency_hz,
            kernel=not self.opening.exclude_kernel,
            precise=min(leader.precise for leader in self.leaders),
            depth=self.opening.max_stack,
            groups=[GroupDetail(pmu=leader.pmu, events=leader.names()) for leader in self.leaders if leader.reading],
        )


def too_frequent(frequency_hz: int, root: Path = ROOT) -> Unavailable | None:
    """Why the kernel would refuse to sample so often; None where it would not."""
    highest = perf_sampling.highest_frequency_hz(root)
    if highest is None or frequency_hz <= highest:
        return None
    return Unavailable(
        f"kernel.perf_event_max_sample_rate is {highest}, below {frequency_hz} Hz",
        f"--frequency {highest}, or {RAISE_RATE}",
    )


def _frequency(options: Options, root: Path) -> tuple[int, list[Note]]:
    """What was asked for, or what the kernel allows of the default; with a note."""
    if options.frequency_hz is not None:
        return options.frequency_hz, []
    why = too_frequent(DEFAULT_FREQUENCY_HZ, root)
    highest = perf_sampling.highest_frequency_hz(root)
    if why is None or highest is None:
        return DEFAULT_FREQUENCY_HZ, []
    return highest, [Note(NoteKind.METHOD, f"sampled at {highest} Hz: {why.reason}", remedy=RAISE_RATE)]


def make_plan(options: Options, machine: Machine, root: Path = ROOT) -> Plan:
    """Tries sampling events out on the calling thread, which works for some milliseconds meanwhile. Raises
    ``NotAllowedError`` where this user may sample nothing."""
    allowed = find_opening(kernel=options.kernel)
    frequency_hz, notes = _frequency(options, root)
    opening = Opening(
        frequency_hz=frequency_hz,
        exclude_kernel=not allowed.kernel,
        wakeups=allowed_tracepoint(COMMON, root) if allowed.kernel else None,
        max_stack=min(options.depth, perf_sampling.deepest_stack(root) or options.depth),
    )
    if not allowed.kernel:
        notes.append(user_code_only("samples", kernel_allowed=allowed.kernel_allowed))
    kinds = kinds_of_core(machine, root)
    cpus = {kind.pmu_name: kind.core.cpus for kind in kinds} if len(kinds) > 1 else {}
    leaders = [
        _best(candidates(kind, most_precise(kind.pmu_name, root)), opening, cpus.get(kind.pmu_name, ()))
        for kind in kinds
    ]
    found = tuple(leader for leader in leaders if leader is not None)
    if len(found) < len(kinds) or not found:
        why = permission.why_no_hardware(root)
        text = f"samples by cpu-clock, without cycles: {why.reason}"
        notes.append(Note(NoteKind.METHOD, text, remedy=why.remedy))
        return Plan((CPU_CLOCK_EVENT,), opening, False, notes)
    return Plan(found, opening, True, notes + _missing_deltas(found))


def _missing_deltas(leaders: Sequence[SamplingEvent]) -> list[Note]:
    if not all(leader.members for leader in leaders):
        why = Unavailable("they get no counter beside cycles")
        return [Note.not_available("instructions between samples", why)]
    if not all(leader.misses for leader in leaders):
        why = Unavailable("no event for them gets a counter here")
        return [Note.not_available("misses of the last-level cache between samples", why)]
    return []


def _best(leaders: Sequence[SamplingEvent], opening: Opening, cpus: Collection[int]) -> SamplingEvent | None:
    """The first that works."""
    with on_processors(cpus):
        return next((leader for leader in leaders if brings_samples(leader, opening)), None)


def brings_samples(leader: SamplingEvent, opening: Opening) -> bool:
    """Whether the clock opens here with its whole group, and samples a little work of this thread: virtual machines
    take precise sampling events that never bring anything."""
    frequency_hz = max(opening.frequency_hz, TRIAL_FREQUENCY_HZ if too_frequent(TRIAL_FREQUENCY_HZ) is None else 0)
    try:
        fds = replace(opening, frequency_hz=frequency_hz).open(leader)
    except OSError:
        return False
    try:
        ring = map_ring(fds[0], 16 * 4096)
    except OSError:
        perf_event.close_group(fds)
        raise
    decoder, found = Decoder(reading=leader.reading), 0
    try:
        perf_event.enable_group(fds[0])
        begin_ns = time.thread_time_ns()
        while not found and time.thread_time_ns() - begin_ns < TRIAL_NS:
            perf_event.busy_work()
            data = bytearray()
            ring.drain(data.extend)
            samples = decoder.decode(bytes(data))[0].samples
            found = int((samples.running_ns > 0).sum()) if leader.reading else len(samples.time_ns)
    finally:
        ring.close()
        perf_event.close_group(fds)
    return found > 0
