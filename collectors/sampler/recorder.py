"""Watching a process: samples every thread that it has or gets, and empties the rings into a file.

All of it happens in this process, in a thread that sleeps until a ring is half full or a thread is created: the watched
one has neither a thread nor memory nor a lock of the sampler's in it. What a drain costs is one write to a file.
"""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.sampler.lifetimes import Before, Lifetimes
from collectors.sampler.plan import Plan
from collectors.sampler.record_decoder import Decoder
from collectors.sampler.records import Mapping
from collectors.sampler.sampling_events import SamplingEvent
from collectors.sampler.threads import SampledThread, TaskEventWatcher, threads_of
from collectors.shared.counting.threads import MORE_DESCRIPTORS, EndedError, RefusedError, descriptors_left, thread_name
from hwprof.errors import HwprofError
from hwprof.hardware import machine

WATCHER_DESCRIPTORS: Final = 1


@dataclass(frozen=True)
class Thread:
    """One that was sampled, and its last name."""

    tid: int
    name: str


def process_cpu_ns(pid: int) -> int | None:
    """The CPU time of a process, of threads that have ended too; None where it is gone. Its clock's number is made as
    ``clock_getcpuclockid(3)`` makes it."""
    try:
        return time.clock_gettime_ns(~pid << 3 | 2)
    except OSError:
        return None


class Recorder:
    """Of the process ``pid``. Its threads are sampled between ``begin`` and ``end``; from the start on it is known
    which mappings it makes."""

    def __init__(self, plan: Plan, pid: int, record_file: Path) -> None:
        """Raises ``OSError`` or ``RefusedError`` where the process cannot be watched or ``record_file`` not
        be written."""
        self._plan = plan
        self._pid = pid
        self._lock = threading.Lock()
        self._threads: dict[int, SampledThread] = {}  # by tid
        self._by_fd: dict[int, SampledThread] = {}
        self._watchers: dict[int, TaskEventWatcher] = {}
        self._sampling = False
        self.failure: Exception | None = None  # why not all samples are there
        self.events: dict[int, SamplingEvent] = {}  # every sampling event there was, by number
        self.switch_out_events: set[int] = set()  # the events that sample switch-outs, by number
        self.wakeup_events: set[int] = set()  # those that record wake-ups
        self.mappings: list[Mapping] = []
        self.refused: dict[int, str] = {}  # tid -> why it is not sampled
        self.missed = 0  # threads that had ended before they could be sampled
        self.lifetimes = Lifetimes()
        self._names: dict[int, str] = {}  # by tid
        self.sampled: set[int] = set()
        self.counted = 0  # of the event, by all threads, sampled or not
        self._process_ns: int | None = None  # at the begin
        self.process_ns: int | None = None  # CPU time of the process between begin and end, whichever thread's
        self.lost = 0  # records of task events and mappings
        self.drained_bytes = 0
        self.ring_bytes = 0  # the smallest
        self._record_file = os.open(record_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.epoll()
        self._poll.register(self._wake, select.EPOLLIN)
        try:
            self._watch_task_events()
        except (OSError, RefusedError):
            self._close()
            raise
        self._thread = threading.Thread(target=self._run, name="hwprof-sampler", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Samples every thread. Raises ``HwprofError`` where the main thread cannot be sampled."""
        with self._lock:
            self._sampling = True
            self.lifetimes.sampling_since_ns = time.monotonic_ns()
            self._sample(threads_of(self._pid))
            self._process_ns = process_cpu_ns(self._pid)
            if self._pid not in self._threads:
                reason = self.refused.get(self._pid, "it has ended")
                raise HwprofError(f"cannot sample the main thread: {reason}")

    def drain(self) -> None:
        """Empties all rings; looks for threads whose creation was not recorded."""
        with self._lock:
            if self._sampling:
                self._sample(threads_of(self._pid))
                for thread in self._threads.values():
                    self._drain(thread)

    def end(self) -> None:
        """No more samples; the rings are emptied for the last time."""
        with self._lock:
            if not self._sampling:
                return
            self._sampling = False
            end_ns = process_cpu_ns(self._pid)
            for thread in self._threads.values():
                thread.disable()
            if self._process_ns is not None and end_ns is not None:
                self.process_ns = end_ns - self._process_ns
            for thread in list(self._threads.values()):
                self._finish(thread)

    def close(self) -> None:
        """Ends."""
        self.end()
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        for fd in list(self._watchers):
            self._hear(fd)
        self._close()

    def own_mappings(self) -> list[Mapping]:
        """Those of the watched process, without its children's."""
        return [mapping for mapping in self.mappings if mapping.pid == self._pid]

    def own_threads(self) -> list[Thread]:
        """Those that were sampled, the main thread first."""
        tids = sorted(self.sampled, key=lambda tid: (tid != self._pid, tid))
        return [Thread(tid, self._names.get(tid, "")) for tid in tids]

    # --- the thread

    def _run(self) -> None:
        try:
            while True:
                for fd, happened in self._poll.poll():
                    if fd == self._wake:
                        return
                    with self._lock:
                        self._attend(fd, hung_up=bool(happened & (select.EPOLLHUP | select.EPOLLERR)))
        except Exception as error:  # reported at the end; what there is by then is kept
            self.failure = error

    def _attend(self, fd: int, *, hung_up: bool) -> None:
        thread = self._by_fd.get(fd)
        if thread is not None:
            if hung_up:
                self._finish(thread)
            else:
                self._drain(thread)
        elif fd in self._watchers:
            self._hear(fd)
            if hung_up:
                self._poll.unregister(fd)

    # --- task events and mappings

    def _watch_task_events(self) -> None:
        """On every processor that is there; those that go off line on the way are not."""
        cpus = machine.online_processors()
        descriptors_left(WATCHER_DESCRIPTORS * len(cpus))
        for cpu in cpus:
            try:
                watcher = TaskEventWatcher(self._pid, cpu)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    continue
                raise
            self._watchers[watcher.fd] = watcher
            self._poll.register(watcher.fd, select.EPOLLIN)

    def _hear(self, fd: int) -> None:
        heard = bytearray()
        self._watchers[fd].drain(heard.extend)
        batch, _ = Decoder(reading=False).decode(bytes(heard))
        self.lost += batch.lost
        self.mappings += batch.mappings
        self._names |= {one.tid: one.name for one in batch.renamings if one.pid == self._pid}
        self.lifetimes.hear(
            [one for one in batch.created_threads if one.pid == self._pid],
            [one for one in batch.ended_threads if one.pid == self._pid],
        )
        if self._sampling:
            created = [one.tid for one in batch.created_threads if one.pid == self._pid]
            for tid in created:
                if tid in self._threads:  # the number of a thread whose end was not seen yet
                    self._finish(self._threads[tid])
            self._sample(created)

    # --- threads

    def _sample(self, tids: Iterable[int]) -> None:
        """Those that are not sampled yet, the main thread first."""
        new = sorted(set(tids) - self._threads.keys(), key=lambda tid: (tid != self._pid, tid))
        room = descriptors_left(self._plan.descriptors * len(new)) if new else 0
        for tid in new:
            if room < self._plan.descriptors:
                self.refused[tid] = f"{os.strerror(errno.EMFILE)} ({MORE_DESCRIPTORS} gives room)"
                continue
            room -= self._plan.descriptors
            try:
                thread = SampledThread(self._plan, tid)
            except EndedError:
                self.missed += 1
                continue
            except RefusedError as error:
                self.refused[tid] = str(error)
                continue
            self.refused.pop(tid, None)
            self._threads[tid] = self._by_fd[thread.fd] = thread
            self.events |= thread.events
            self.switch_out_events |= {thread.switch_out_event} if thread.switch_out_event is not None else set()
            self.wakeup_events |= {thread.wakeup_event} if thread.wakeup_event is not None else set()
            self.sampled.add(tid)
            self.ring_bytes = min(self.ring_bytes or thread.ring_bytes, thread.ring_bytes)
            self._poll.register(thread.fd, select.EPOLLIN)
            before = Before.of(self._pid, tid)
            thread.enable()
            self.lifetimes.sampled(tid, before.looked_again(self._pid, tid) if before is not None else None)
            self._names[tid] = thread_name(tid, self._pid) or self._names.get(tid, "")  # last: it runs on meanwhile

    def _finish(self, thread: SampledThread) -> None:
        """The thread has ended, or sampling has."""
        self._drain(thread)
        counted = thread.counted()
        self.counted += counted
        self.lifetimes.finished(thread.tid, counted)
        self._poll.unregister(thread.fd)
        del self._by_fd[thread.fd], self._threads[thread.tid]
        thread.close()

    def _drain(self, thread: SampledThread) -> None:
        self.drained_bytes += thread.drain(self._write)

    def _write(self, data: memoryview) -> None:
        while data:
            data = data[os.write(self._record_file, data) :]

    def _close(self) -> None:
        for watcher in self._watchers.values():
            watcher.close()
        self._watchers.clear()
        self._poll.close()
        os.close(self._wake)
        os.close(self._record_file)
