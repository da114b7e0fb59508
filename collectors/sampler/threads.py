"""What is open on one thread of another process: its sampling events, and the ring that their records go to."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

from collectors.sampler import switch_outs
from collectors.sampler.plan import Plan
from collectors.sampler.record_decoder import COMMON
from collectors.sampler.ring import SMALLEST, map_ring, ring_bytes, why_no_ring
from collectors.sampler.sampling_events import SamplingEvent
from collectors.shared.counting.threads import ENDED, EndedError, RefusedError
from hwprof.hardware import perf_event, perf_sampling, permission
from hwprof.hardware.perf_sampling import SamplingAttributes

_IOC_SET_OUTPUT: Final = 0x2405


class SampledThread:
    """A thread's sampling events, switched off at first, and its ring. ``events``: which sampling event each event
    number is, ``switch_out_event`` and ``wakeup_event``: the numbers of those that sample the thread's switch-outs, and
    that record whom it wakes (None: there is none)."""

    def __init__(self, plan: Plan, tid: int) -> None:
        """Raises ``EndedError`` or ``RefusedError``; then nothing stays open."""
        self.tid = tid
        self.events: dict[int, SamplingEvent] = {}
        self.switch_out_event: int | None = None
        self.wakeup_event: int | None = None
        self._groups: list[list[int]] = []
        try:
            for leader in plan.leaders:
                self._groups.append(plan.opening.open(leader, tid))
                self.events[perf_sampling.event_id(self._groups[-1][0])] = leader
            self._ring = map_ring(self.fd, ring_bytes(plan.bytes_a_second()))
            if plan.opening.switch_outs:
                self.switch_out_event = self._open_beside(switch_outs.attributes(COMMON))
            if plan.opening.wakeups is not None:
                self.wakeup_event = self._open_beside(plan.opening.wakeups.attributes(COMMON))
            for group in self._groups[1:]:
                fcntl.ioctl(group[0], _IOC_SET_OUTPUT, self.fd)
        except OSError as error:
            self._close_events()
            if error.errno in ENDED:
                raise EndedError from error
            why = why_no_ring() if error.errno == errno.EPERM and self.events else permission.why_not_allowed(error)
            raise RefusedError(why.explanation) from error

    @property
    def fd(self) -> int:
        """What is polled: readable when the ring is half full, hung up when the thread has ended."""
        return self._groups[0][0]

    @property
    def ring_bytes(self) -> int:
        """As much as this user may lock."""
        return self._ring.data_bytes

    def enable(self) -> None:
        """Sampling begins."""
        for group in self._groups:
            perf_event.enable_group(group[0])

    def disable(self) -> None:
        """Sampling ends."""
        for group in self._groups:
            perf_event.disable_group(group[0])

    def drain(self, write: Callable[[memoryview], object]) -> int:
        """Hands out all records."""
        return self._ring.drain(write)

    def counted(self) -> int:
        """How much of its event the thread had so far, sampled or not: cycles, or nanoseconds."""
        return sum(_value(group[0], leader) for group, leader in zip(self._groups, self.events.values(), strict=False))

    def close(self) -> None:
        """Gives everything back; what was not drained is lost."""
        self._ring.close()
        self._close_events()

    def _open_beside(self, attributes: SamplingAttributes) -> int | None:
        """The number of an event beside those that sample; where the kernel has no such event for this machine, samples
        are taken all the same."""
        with contextlib.suppress(OSError):
            self._groups.append([perf_event.open_event(attributes, self.tid)])
            return perf_sampling.event_id(self._groups[-1][0])
        return None

    def _close_events(self) -> None:
        for group in self._groups:
            perf_event.close_group(group)
        self._groups = []


class TaskEventWatcher:
    """Records thread creation, names and new executable mappings of a process, from its first thread on: a dummy event,
    inherited by every new thread, on each processor, as inherited events with a ring must be."""

    def __init__(self, pid: int, cpu: int) -> None:
        """Raises ``OSError``, or ``RefusedError`` where there is no memory for its ring."""
        attributes = SamplingAttributes(
            perf_event.TYPE_SOFTWARE,
            perf_sampling.CONFIG_DUMMY,
            sample_type=COMMON,
            exclude_kernel=True,
            inherit=True,
            task_events=True,
            mappings=True,
            thread_names=True,
            wakeup_bytes=1,
        )
        self.fd = perf_event.open_event(attributes, pid, cpu=cpu)
        try:
            self._ring = map_ring(self.fd, 2 * SMALLEST)
        except OSError as error:
            os.close(self.fd)
            raise RefusedError(why_no_ring().explanation) from error

    def drain(self, write: Callable[[memoryview], object]) -> int:
        """Hands out all records."""
        return self._ring.drain(write)

    def close(self) -> None:
        """Gives everything back."""
        self._ring.close()
        os.close(self.fd)


def threads_of(pid: int) -> set[int]:
    """The threads that the process has now; none if it has ended."""
    try:
        return {int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()}
    except OSError:
        return set()


def _value(fd: int, leader: SamplingEvent) -> int:
    if leader.reading:
        return perf_event.read_group(fd, 1 + len(leader.members))[2][0]
    (value,) = struct.unpack("=Q", os.read(fd, 8))
    return int(value)
