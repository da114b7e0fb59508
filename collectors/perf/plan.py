"""Which events are counted, in which sets: what opens *and* counts here, tried out on the calling thread.

An event can fail in three ways: it does not open; it opens (alone or in a group) and never gets a counter; it opens,
runs, and stays 0 although it must move. Each dropped event keeps its reason.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import Event

MAX_HARDWARE_EVENTS = 4
"""Hardware events in one set: what Intel with hyper-threading has general counters for, the scarcest in common use."""

TRIAL_NS = 20_000_000
"""How long an event that does not run at first is tried: several turns of the kernel's rotation among users."""

RUNNING_SHARE = 0.1
"""Less than this share of its time on a counter is never: a group that does not fit shows some microseconds as well,
since the kernel starts its members one by one before it gives up."""


@dataclass(frozen=True)
class Dropped:
    """Why an event is not counted, and what would change it."""

    reason: str
    remedy: str | None = None


@dataclass(frozen=True)
class EventSet:
    """Events that are counted together: one group a thread, the first is its leader."""

    events: tuple[Event, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The events' names, in the order of the group's values."""
        return tuple(event.name for event in self.events)


@dataclass
class Plan:
    """What is counted. ``sets`` is empty where nothing is."""

    sets: list[EventSet]
    dropped: dict[str, Dropped]
    kernel: bool  # hardware events count kernel code as well
    kernel_allowed: bool
    notes: list[str] = field(default_factory=list)

    def events(self) -> list[Event]:
        """Every counted event once."""
        return list({event.name: event for group in self.sets for event in group.events}.values())

    def open(self, events: Sequence[Event], tid: int = 0) -> list[int]:
        """The events as a group on a thread (0: the caller), switched off; the first descriptor is the leader's."""
        fds: list[int] = []
        try:
            for event in events:
                fds.append(perf_event.open_event(self.attributes(event, leader=not fds), tid, fds[0] if fds else -1))
        except OSError:
            close(fds)
            raise
        return fds

    def attributes(self, event: Event, *, leader: bool) -> perf_event.Attributes:
        """How the kernel is asked for the event. Software events leave the kernel out only where they must."""
        kernel = self.kernel if event.kind == "hardware" else self.kernel_allowed
        assert event.type is not None and event.config is not None
        return perf_event.Attributes(event.type, event.config, exclude_kernel=not kernel, disabled=leader)


class NotAllowedError(OSError):
    """Not even a software event on one's own thread can be opened."""


def kernel_allowed() -> bool:
    """Whether this process may count what the kernel does; raises ``NotAllowedError`` where it may count nothing."""
    try:
        os.close(perf_event.open_event(perf_event.Attributes(perf_event.TYPE_SOFTWARE, perf_event.CONFIG_TASK_CLOCK)))
        return True
    except OSError as error:
        if error.errno != errno.EACCES:
            raise NotAllowedError(error.errno, error.strerror) from error
    user = perf_event.Attributes(perf_event.TYPE_SOFTWARE, perf_event.CONFIG_TASK_CLOCK, exclude_kernel=True)
    try:
        os.close(perf_event.open_event(user))
        return False
    except OSError as error:
        raise NotAllowedError(error.errno, error.strerror) from error


def make_plan(events: Iterable[Event], *, kernel: bool | None = None) -> Plan:
    """The sets in which those of ``events`` that work here are counted.

    ``kernel``: whether hardware events count kernel code; None: wherever it is allowed. Raises ``NotAllowedError``.
    """
    allowed = kernel_allowed()
    plan = Plan(sets=[], dropped={}, kernel=allowed if kernel is None else kernel and allowed, kernel_allowed=allowed)
    usable = []
    for event in events:
        failure = _failure(plan, event)
        if failure is None:
            usable.append(event)
        else:
            plan.dropped[event.name] = failure
    hardware = [event for event in usable if event.kind == "hardware"]
    software = tuple(event for event in usable if event.kind == "software")
    for packed in pack(hardware):
        plan.sets += [EventSet(group + software) for group in _schedulable(plan, packed, software)]
    if not plan.sets and software:
        plan.sets = [EventSet(software)]
    return plan


def pack(hardware: Sequence[Event], size: int = MAX_HARDWARE_EVENTS) -> list[tuple[Event, ...]]:
    """Hardware events in groups of at most ``size``; events of the first topic, ``core``, are in every group, since
    everything is compared with cycles and instructions; those of another topic stay together where they fit."""
    core = [event for event in hardware if event.topic == "core"]
    rest = [event for event in hardware if event.topic != "core"]
    room = max(1, size - len(core))
    topics = list(dict.fromkeys(event.topic for event in rest))
    chunks: list[list[Event]] = []
    for topic in topics:
        members = [event for event in rest if event.topic == topic]
        pieces = [members[start : start + room] for start in range(0, len(members), room)]
        for piece in pieces:
            if chunks and len(chunks[-1]) + len(piece) <= room:
                chunks[-1] += piece
            else:
                chunks.append(piece)
    if not chunks:
        return [tuple(core)] if core else []
    return [(*core, *chunk) for chunk in chunks]


def _failure(plan: Plan, event: Event) -> Dropped | None:
    """Why the event cannot be counted on its own; None if it can."""
    if event.kernel_only and not plan.kernel_allowed:
        return Dropped(
            f"{event.name} happen in the kernel, which this user may not count"
            f" (kernel.perf_event_paranoid is {perf_event.paranoid_level()})",
            "sudo sysctl kernel.perf_event_paranoid=1",
        )
    try:
        runs, (value,) = _try_out(plan, [event])
    except OSError as error:
        return Dropped(_refusal(event, error))
    if not runs:
        return Dropped(f"{event.name} opens but never gets a hardware counter: another user holds them all")
    if value == 0 and event.busy_loop_moves:
        return Dropped(f"{event.name} opens but stays 0 where it must count: this processor does not implement it")
    return None


def _refusal(event: Event, error: OSError) -> str:
    if event.kind == "hardware" and error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL):
        return f"this machine's PMU does not offer {event.name} ({errno.errorcode[error.errno]})"
    return f"the kernel refuses {event.name} ({error.strerror})"


def _schedulable(plan: Plan, group: tuple[Event, ...], software: tuple[Event, ...]) -> list[tuple[Event, ...]]:
    """The group if the kernel schedules it as a whole, else smaller ones that it does schedule."""
    try:
        runs, _ = _try_out(plan, [*group, *software])
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: more than the processor can ever count together
            raise
        runs = False
    if runs:
        return [group]
    if len(group) == 1:
        plan.dropped[group[0].name] = Dropped(f"{group[0].name} never gets a hardware counter beside software events")
        return []
    middle = (len(group) + 1) // 2
    plan.notes.append(
        f"{', '.join(event.name for event in group)} do not fit on this processor's free counters together"
        " (the NMI watchdog takes one: sudo sysctl kernel.nmi_watchdog=0); counted in smaller sets"
    )
    return _schedulable(plan, group[:middle], software) + _schedulable(plan, group[middle:], software)


def _try_out(plan: Plan, events: Sequence[Event]) -> tuple[bool, tuple[int, ...]]:
    """Counts a little work of this thread with a group of the events: whether it got its counters, and the values."""
    fds = plan.open(events)
    try:
        perf_event.enable_group(fds[0])
        while True:
            perf_event.busy_work()
            enabled_ns, running_ns, values = perf_event.read_group(fds[0], len(events))
            if 2 * running_ns > enabled_ns or enabled_ns > TRIAL_NS:
                break
    finally:
        close(fds)
    return running_ns > RUNNING_SHARE * enabled_ns, values


def close(fds: Sequence[int]) -> None:
    """Gives a group's descriptors back, members before their leader."""
    for fd in reversed(fds):
        os.close(fd)
