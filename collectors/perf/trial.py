"""Events tried out on the calling thread: what opens *and* counts here.

An event can fail in three ways: it does not open; it opens (alone or in a group) and never gets a counter; it opens,
runs, and stays 0 although it must move.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from collectors.shared.event_opening import Opening
from collectors.shared.processor_affinity import on_processors
from hwprof.hardware import perf_event, permission
from hwprof.hardware.countable import Countable
from hwprof.hardware.machine import ROOT
from hwprof.hardware.packing import Budget
from hwprof.unavailable import Unavailable

TRIAL_NS: Final = 20_000_000
"""How long an event that does not run at first is tried: several turns of the kernel's rotation among users."""

RUNNING_SHARE: Final = 0.1
"""Less than this share of its time on a counter is never: a group that does not fit shows some microseconds as well,
since the kernel starts its members one by one before it gives up."""

WHOLE_SHARE: Final = 0.95
"""From this share of its time on a counter on, nobody takes turns with it: those who do have about as much each."""


class Trial:
    """Tries events out. ``cpus``: of hybrids, the processors on which each PMU counts.

    Where others count on the same threads, such as a sampler, the kernel lets groups that do not fit next to theirs
    take turns with them. ``in_turns``: a group that counts for a part of its time will do.
    """

    def __init__(self, opening: Opening, cpus: Mapping[str | None, Collection[int]], root: Path = ROOT) -> None:
        self._opening = opening
        self._cpus = cpus
        self._root = root
        self.in_turns = False

    def failure(self, event: Countable) -> Unavailable | None:
        """Why the event cannot be counted on its own; None if it can."""
        if (event.event.kernel_only or event.exclude_user) and not self._opening.kernel_allowed:
            return Unavailable(
                "this user may not count what happens in the kernel"
                f" (kernel.perf_event_paranoid is {perf_event.paranoid_level(self._root)})",
                permission.LOWER_PARANOID,
            )
        try:
            share, (value,) = self._counts([event], enough=0.5)
        except OSError as error:
            return permission.why_refused(event, error)
        if share < RUNNING_SHARE:
            holder = permission.who_holds_counters(self._root)
            return Unavailable(f"opens but never gets a hardware counter: {holder.reason}", holder.remedy)
        if value == 0 and event.event.busy_loop_moves and not event.exclude_user:
            return Unavailable(
                "opens but stays 0 where it must count: this processor, or its hypervisor, does not implement it",
                "count the other events, or run on real hardware",
            )
        return None

    def schedules(self, events: Sequence[Countable]) -> bool:
        """Whether the kernel gives the group its counters, all at once and all the time."""
        wanted = RUNNING_SHARE if self.in_turns else WHOLE_SHARE
        try:
            return self._counts(events, enough=wanted)[0] >= wanted
        except OSError as error:
            if error.errno == errno.EINVAL:  # more than the processor can ever count together
                return False
            raise

    def free_counters(self, usable: Sequence[Countable], budget: Budget) -> Budget | None:
        """Which of one PMU's counters are really to be had: one event that any of them can count, as often as it gets
        counters; and with it each event that should have one of its own. None where no event is fit for that, or not
        even one counter is free."""
        plain = [event for event in usable if event.event.counters == 1 and not event.event.only]
        if not plain:
            return None
        event = min(plain, key=lambda one: one.fixed)
        for general in range(budget.general, 0, -1):
            filled = [event] * (general + event.fixed)
            if self.schedules(filled):
                own = [one for one in usable if one.fixed and one.event.leader is None and one is not event]
                taken = frozenset(one.event.name for one in own if not self.schedules([one, *filled]))
                return Budget(general, taken)
        return None

    def _counts(self, events: Sequence[Countable], *, enough: float) -> tuple[float, tuple[int, ...]]:
        """Counts a little work of this thread with a group of the events: the share of the time that it had its
        counters, and the values. Tries no longer than until that share is ``enough``."""
        with on_processors(self._cpus.get(events[0].pmu, ())):
            fds = self._opening.open(events)
            try:
                perf_event.enable_group(fds[0])
                while True:
                    perf_event.busy_work()
                    enabled_ns, running_ns, values = perf_event.read_group(fds[0], len(events))
                    if running_ns > enough * enabled_ns or enabled_ns > TRIAL_NS:
                        break
            finally:
                perf_event.close_group(fds)
        return running_ns / max(enabled_ns, 1), values
