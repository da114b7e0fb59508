"""What makes a sample: a hardware counter of cycles with a group of events read at each sample, or processor time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.sampler.record_decoder import COMMON, GROUP_FORMAT, sample_type
from collectors.sampler.wakeups import Tracepoint
from hwprof.hardware import perf_event, perf_sampling
from hwprof.hardware.catalogue import Event
from hwprof.hardware.cores import DEVICES
from hwprof.hardware.countable import Countable
from hwprof.hardware.perf_sampling import SamplingAttributes
from hwprof.hardware.pmu import Code
from hwprof.hardware.resolution import Kind

CYCLES: Final = "cycles"
CPU_CLOCK: Final = "cpu-clock"
INSTRUCTIONS: Final = "instructions"
LLC_METRIC: Final = "llc_mpki"
"""The metric whose recipe names each processor's events for misses of the last-level cache."""

_SUM: Final = re.compile(r'\(?\s*([+-]?\s*"[^"]+"(?:\s*[+-]\s*"[^"]+")*)\s*\)?')
_TERM: Final = re.compile(r'([+-]?)\s*"([^"]+)"')


@dataclass(frozen=True)
class SamplingEvent:
    """An event that samples, and those that are read with it: ``misses`` are the factors with which the events after
    ``cycles`` and ``instructions`` add up to misses of the last-level cache."""

    name: str
    code: Code
    pmu: str | None = None  # the PMU of one kind of core; None: any core
    members: tuple[Countable, ...] = ()
    misses: tuple[int, ...] = ()
    precise: int = 0

    @property
    def reading(self) -> bool:
        """Whether samples hold the group's values."""
        return self.pmu is not None

    def names(self) -> list[str]:
        """The group's events, in order."""
        return [self.name, *(event.name for event in self.members)]


@dataclass(frozen=True)
class Opening:
    """How a sampling event and its group are opened on a thread."""

    frequency_hz: int
    exclude_kernel: bool
    max_stack: int
    wakeups: Tracepoint | None = None  # recorded on every thread, where that is allowed

    @property
    def switch_outs(self) -> bool:
        """Whether switch-outs can be recorded: they happen in the kernel."""
        return not self.exclude_kernel

    @property
    def beside(self) -> int:
        """How many events there are on a thread beside those that sample: of switch-outs, and of wake-ups."""
        return int(self.switch_outs) + (self.wakeups is not None)

    def attributes(self, leader: SamplingEvent) -> list[SamplingAttributes]:
        """The sampling event and then its group's members. The first one carries the thread's switches."""
        read_format = GROUP_FORMAT if leader.reading else 0
        first = SamplingAttributes(
            *_code(leader.code),
            frequency_hz=self.frequency_hz,
            sample_type=sample_type(reading=leader.reading),
            read_format=read_format,
            precise=leader.precise,
            exclude_kernel=self.exclude_kernel,
            max_stack=self.max_stack,
            disabled=True,
            context_switches=True,
        )
        members = [
            SamplingAttributes(
                *_code(event.code), sample_type=COMMON, read_format=read_format, exclude_kernel=self.exclude_kernel
            )
            for event in leader.members
        ]
        return [first, *members]

    def open(self, leader: SamplingEvent, tid: int = 0) -> list[int]:
        """The group's descriptors on a thread, the sampling event's first, switched off. Raises ``OSError``; then
        nothing stays open."""
        return perf_event.open_group(self.attributes(leader), tid)


CPU_CLOCK_EVENT: Final = SamplingEvent(CPU_CLOCK, Code(perf_event.TYPE_SOFTWARE, perf_sampling.CONFIG_CPU_CLOCK))


def candidates(kind: Kind, most_precise: int) -> list[SamplingEvent]:
    """The sampling events that one kind of core may have, the most informative first: with all deltas, without misses,
    alone; each as precise as the PMU can, then less so. A delta is worth more than precision, since what is looked at
    are functions."""
    cycles = _countable(kind, CYCLES)
    if cycles is None:
        return []
    instructions = _countable(kind, INSTRUCTIONS)
    groups: list[tuple[tuple[Countable, ...], tuple[int, ...]]] = [((), ())]
    if instructions is not None:
        groups.insert(0, ((instructions,), ()))
        misses = _llc_misses(kind)
        if misses:
            events, factors = zip(*misses, strict=True)
            groups.insert(0, ((instructions, *events), factors))
    return [
        SamplingEvent(CYCLES, cycles.code, kind.pmu_name, members, factors, precise)
        for members, factors in groups
        for precise in range(most_precise, -1, -1)
    ]


def most_precise(pmu: str, root: Path) -> int:
    """How precise the PMU's samples can be, as sysfs reports it; 0 where it does not: Arm's drivers take any wish and
    fulfil none."""
    try:
        return int((root / DEVICES / pmu / "caps/max_precise").read_text())
    except (OSError, ValueError):
        return 0


def _code(code: Code) -> tuple[int, int, int, int]:
    return code.type, code.config, code.config1, code.config2


def _countable(kind: Kind, name: str) -> Countable | None:
    event: Event | None = kind.events.get(name)
    found = kind.countable(event, name) if event is not None else None
    return found if isinstance(found, Countable) else None


def _llc_misses(kind: Kind) -> list[tuple[Countable, int]]:
    """The events that the processor's recipe adds up to misses of the last-level cache, each with its sign; none where
    there is no recipe, or it is no plain sum, or it needs an event outside of cores."""
    recipe = kind.recipes.get(LLC_METRIC)
    found = []
    for name, factor in (signed_sum(recipe.of) if recipe is not None else {}).items():
        event = _countable(kind, name)
        if event is None or event.event.pmu is not None:
            return []
        found.append((event, factor))
    return found


def signed_sum(formula: str) -> Mapping[str, int]:
    """``("a" + "b" - "c")`` as {a: 1, b: 1, c: -1}; empty for anything that is no such sum."""
    whole = _SUM.fullmatch(formula.strip())
    if whole is None:
        return {}
    return {name: -1 if sign == "-" else 1 for sign, name in _TERM.findall(whole[1])}
