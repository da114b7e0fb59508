"""perf_event_open as tests want it: how many counters there are, what is refused, what stays 0."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from collectors.perf.plan import Plan, make_plan
from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import Event, catalogue
from hwprof.hardware.countable import Countable, Selection
from hwprof.hardware.perf_event import Attributes
from hwprof.hardware.pmu import Code
from hwprof.run.manifest import CoreKind, Machine, MetricDefinition

HARDWARE = ("cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses")
SOFTWARE = ("task-clock", "page-faults", "context-switches", "cpu-migrations")

UNIFORM = (CoreKind("cpu", None, (0, 1, 2, 3)),)
HYBRID = (CoreKind("cpu_core", None, (0, 1)), CoreKind("cpu_atom", None, (2, 3)))
PMU_TYPES = {"cpu": 4, "cpu_core": 4, "cpu_atom": 10}


def machine(cores: Sequence[CoreKind] = UNIFORM) -> Machine:
    return Machine(
        hostname="h",
        architecture="x86_64",
        processor="a processor",
        vendor="v",
        family=1,
        model=1,
        stepping=1,
        logical_processors=4,
        physical_cores=4,
        sockets=1,
        caches=(),
        memory_bytes=1,
        kernel="6.18",
        system="s",
        hypervisor=None,
        governor=None,
        pmus=tuple(str(kind.pmu) for kind in cores),
        has_core_pmu=True,
        cores=tuple(cores),
    )


def countable(name: str, pmu: str = "cpu", *, qualified: bool = False, **changes: bool) -> Countable:
    """A general event, or a raw one that the catalogue does not have. ``qualified``: one of several kinds of core's."""
    event = catalogue().named().get(name) or Event(name=name, meaning=name, code=f"event={name}")
    if event.kind == "software":
        pmu_name, full = None, name
    else:
        pmu_name, full = pmu, f"{pmu}/{name}/" if qualified else name
    if event.type is None or event.config is None:
        code = raw(name, pmu)
    else:
        code = Code(event.type, event.config | (PMU_TYPES[pmu] << 32 if qualified and pmu_name else 0))
    return Countable(full, event, code, name, pmu_name, **changes)


def raw(name: str, pmu: str) -> Code:
    return Code(PMU_TYPES[pmu], sum(ord(letter) << 8 * place for place, letter in enumerate(name[:7])))


def selection(
    hardware: Iterable[Countable | str] = HARDWARE,
    bundles: Iterable[Sequence[str]] = (("cycles", "instructions"), HARDWARE[2:4], HARDWARE[4:6]),
    software: Iterable[str] = SOFTWARE,
    metrics: Sequence[MetricDefinition] = (),
) -> Selection:
    events = [countable(event) if isinstance(event, str) else event for event in hardware]
    return Selection((*events, *map(countable, software)), tuple(map(tuple, bundles)), tuple(metrics))


@dataclass
class Kernel:
    """``counters``: of each PMU. ``free``: those of them that nobody else holds. ``undisturbed``: those of them that
    nobody takes turns on; ``held``: events whose own counter somebody else has. ``dead`` events stay 0."""

    counters: int = 6
    free: int | None = None
    undisturbed: int | None = None
    held: Collection[str] = ()
    refused: dict[str, int] = field(default_factory=dict)
    dead: Collection[str] = ()
    conflicts: Collection[frozenset[str]] = ()  # events that never count together
    kernel_allowed: bool = True
    everything_fails: int | None = None
    cores: Sequence[CoreKind] = UNIFORM
    events: Sequence[Countable] = ()
    here: frozenset[int] = frozenset({0, 1, 2, 3})  # where the thread may run
    groups: dict[int, list[Countable]] = field(default_factory=dict)
    opened: list[Attributes] = field(default_factory=list)
    enabled_ns: int = 0

    def install(self, monkeypatch: pytest.MonkeyPatch, chosen: Selection) -> Kernel:
        self.events = chosen.events
        monkeypatch.setattr(perf_event, "open_event", self.open_event)
        monkeypatch.setattr(perf_event, "enable_group", lambda fd: None)
        monkeypatch.setattr(perf_event, "read_group", self.read_group)
        monkeypatch.setattr(perf_event, "busy_work", lambda: 0)
        monkeypatch.setattr(perf_event, "core_pmu_counts", lambda: self.counters > 0)
        monkeypatch.setattr(perf_event, "paranoid_level", lambda root=None: 1 if self.kernel_allowed else 2)
        monkeypatch.setattr(os, "sched_getaffinity", lambda tid: set(self.here))
        monkeypatch.setattr(os, "sched_setaffinity", self.move)
        return self

    def move(self, tid: int, cpus: Collection[int]) -> None:
        assert tid == 0 and cpus
        self.here = frozenset(cpus)

    def open_event(self, attributes: Attributes, tid: int = 0, group_fd: int = -1, cpu: int = -1) -> int:
        if self.everything_fails:
            raise OSError(self.everything_fails, os.strerror(self.everything_fails))
        if not attributes.exclude_kernel and not self.kernel_allowed:
            raise OSError(errno.EACCES, "Permission denied")
        self.opened.append(attributes)
        event = self._event(attributes)
        if event.event.name in self.refused:
            code = self.refused[event.event.name]
            raise OSError(code, os.strerror(code))
        assert attributes.disabled == (group_fd < 0)  # members follow their leader
        members = self.groups.get(group_fd, [])
        if sum(member.kind == "hardware" for member in [*members, event]) > self.counters > 0:
            raise OSError(errno.EINVAL, "Invalid argument")  # more than the processor has, whoever holds them
        fd = os.open(os.devnull, os.O_RDONLY)
        self.groups.setdefault(fd if group_fd < 0 else group_fd, [])
        if group_fd < 0:
            self.groups[fd] = []
        self.groups[fd if group_fd < 0 else group_fd].append(event)
        return fd

    def read_group(self, fd: int, events: int) -> tuple[int, int, tuple[int, ...]]:
        group = self.groups[fd]
        assert len(group) == events
        names = {event.event.name for event in group}
        free = self.counters if self.free is None else self.free
        fits = sum(event.kind == "hardware" for event in group) <= free
        fits &= not any(conflict <= names for conflict in self.conflicts)
        fits &= all(self._counts_here(event) for event in group)
        self.enabled_ns += 1_000_000
        # a group that does not fit shows a few microseconds, as the real kernel does
        running_ns = self.enabled_ns if fits else 4_000
        hardware = [event for event in group if event.kind == "hardware"]
        general = sum(not event.fixed or event.event.name in self.held for event in hardware)
        if self.undisturbed is not None and general > self.undisturbed:
            running_ns //= 2
        return self.enabled_ns, running_ns, tuple(int(fits and event.event.name not in self.dead) for event in group)

    def _counts_here(self, event: Countable) -> bool:
        cpus = next((kind.cpus for kind in self.cores if kind.pmu == event.pmu), None)
        return cpus is None or self.here <= set(cpus)

    def _event(self, attributes: Attributes) -> Countable:
        asked = Code(attributes.type, attributes.config, attributes.config1, attributes.config2)
        own = next((event for event in self.events if event.code == asked), None)
        return own or countable("task-clock")  # what finds out whether anything may be counted


def made(
    monkeypatch: pytest.MonkeyPatch,
    fake: Kernel,
    chosen: Selection | None = None,
    *,
    kernel: bool | None = None,
    root: Path = Path("/nonexistent"),
) -> Plan:
    chosen = selection() if chosen is None else chosen
    fake.install(monkeypatch, chosen)
    return make_plan(chosen, machine(fake.cores), kernel=kernel, root=root)
