"""A wait followed to the thread that ended it, and what that one did meanwhile, back to where the wait began.

Who woke a thread is recorded where the kernel's scheduling tracepoints may be used (``waker`` and ``woken_ns`` of the
table ``switches``). Else it is taken to be the last thread that ran before the waiting one came back: of several that
ran until then one that waits for others too rather than one that never does, and of these the one that ran longest
meanwhile; of a wait for the end of a thread, the one that ended last. What threads did is known from their switches,
exactly; a waker that waited itself is followed to its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import msgspec
import numpy as np
import polars as pl

from hwprof.analysis.lifetimes import FAR
from hwprof.analysis.states import ABSENT, BARRIER, BLOCKED, BUSY, PREEMPTED

JOIN: Final = "end of thread"

MUTUAL: Final = frozenset({BARRIER, "pthread barrier", "lock", "condition", "GIL", "semaphore", JOIN, BLOCKED})
"""Waits that another thread ends."""

POLLED: Final = "GIL"
"""Waited for in turns of some milliseconds, at the end of which a timer wakes the thread, and it waits on."""

UNTIL_NS: Final = 100_000
"""A thread that ran so shortly before another one came back may have woken it: a wake-up takes as long."""

STEPS: Final = 100_000
"""Of one wait: more of them are given up."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a wait: which thread it lies on, and what that one did."""

    tid: int
    state: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class _Thread:
    """When a thread was off its processor, by time; it was on one between. ``waker``: 0 where nobody knows."""

    tid: int
    begins: list[int]
    ends: list[int]
    states: list[str]
    woken: list[int]
    wakers: list[int]
    away: list[int]  # how long it was off a processor before each of the times
    waits: bool  # for others, at some time

    @classmethod
    def of(cls, tid: int, rows: pl.DataFrame) -> _Thread:
        begins, ends, states = (rows[name].to_list() for name in ("begin_ns", "end_ns", "state"))
        lengths = [end - begin for begin, end in zip(begins, ends, strict=True)]
        wakers, woken = rows["waker"].fill_null(0).to_list(), rows["woken_ns"].fill_null(0).to_list()
        waits = any(state in MUTUAL for state in states)
        return cls(tid, begins, ends, states, woken, wakers, [0, *accumulate(lengths)], waits)

    def before(self, time_ns: int) -> int:
        """The last time off a processor that began before the time; -1: none."""
        return bisect_left(self.begins, time_ns) - 1

    def last_ran(self, time_ns: int) -> int:
        """When it was on a processor for the last time before (at) the time."""
        place = self.before(time_ns)
        return time_ns if place < 0 or self.ends[place] < time_ns else self.begins[place]

    def ran(self, begin_ns: int, end_ns: int) -> int:
        """For how long it was on a processor."""
        return end_ns - begin_ns - (self._away_before(end_ns) - self._away_before(begin_ns))

    def _away_before(self, time_ns: int) -> int:
        place = self.before(time_ns)
        return 0 if place < 0 else self.away[place] + min(time_ns, self.ends[place]) - self.begins[place]

    @property
    def born_ns(self) -> int:
        """When it was created; ``-FAR``: before all that is known."""
        return self.ends[0] if self.states and self.states[0] == ABSENT and self.begins[0] <= -FAR else -FAR

    @property
    def ended_ns(self) -> int:
        """When it ended; ``FAR``: after all that is known."""
        return self.begins[-1] if self.states and self.states[-1] == ABSENT and self.ends[-1] >= FAR else FAR


class WaitChains:
    """Of the threads of a process."""

    def __init__(self, absences: pl.DataFrame, others: Iterable[int] = ()) -> None:
        """``absences``: as ``thread_states.absences`` makes them of all threads; ``others``: threads that are known to
        have been there, and may have none."""
        never_off = absences.clear()
        self._threads = {
            int(tid): _Thread.of(int(tid), rows)
            for (tid,), rows in absences.sort("tid", "begin_ns").group_by(["tid"], maintain_order=True)
        }
        for tid in others:
            self._threads.setdefault(tid, _Thread.of(tid, never_off))
        self._all = list(self._threads.values())
        self._born_ns = np.array([one.born_ns for one in self._all], np.int64)
        self._ended_ns = np.array([one.ended_ns for one in self._all], np.int64)
        self._ends = sorted((one.ended_ns, one.tid) for one in self._all if one.ended_ns < FAR)
        self._recorded = absences["waker"].null_count() < absences.height

    def follow(self, tid: int, begin_ns: int, end_ns: int) -> list[Piece]:
        """The pieces of a thread's wait, or of a part of it, from its end to its begin."""
        waiting = self._threads[tid]
        place = bisect_right(waiting.begins, begin_ns) - 1
        if waiting.ends[place] == FAR:
            return [Piece(tid, waiting.states[place], begin_ns, end_ns)]
        pieces: list[Piece] = []
        found: tuple[_Thread | None, int] = self._woken_by(waiting, place, begin_ns, waiting.ends[place], pieces)
        for _ in range(STEPS):
            thread, now = found
            if thread is None or now <= begin_ns:
                break
            found = self._before(thread, begin_ns, now, pieces)
        now = found[1]
        if now > begin_ns:
            pieces.append(Piece(tid, waiting.states[place], begin_ns, now))
        cut = (msgspec.structs.replace(one, end_ns=min(one.end_ns, end_ns)) for one in pieces)
        return [one for one in cut if one.end_ns > one.begin_ns]

    def _before(self, thread: _Thread, since_ns: int, until_ns: int, pieces: list[Piece]) -> tuple[_Thread | None, int]:
        """What the thread did last before ``until_ns``: adds that, and tells where the path goes on, and when."""
        place = thread.before(until_ns)
        came_back_ns = thread.ends[place] if place >= 0 else since_ns
        if place < 0 or came_back_ns < until_ns:  # it was at work since then
            begin_ns = max(since_ns, came_back_ns)
            pieces.append(Piece(thread.tid, BUSY, begin_ns, until_ns))
            return thread, begin_ns
        begin_ns, state = max(since_ns, thread.begins[place]), thread.states[place]
        if state == ABSENT:  # it was created then
            return self._last_that_ran(thread, since_ns, until_ns), until_ns
        if state in MUTUAL:
            return self._woken_by(thread, place, begin_ns, until_ns, pieces)
        pieces.append(Piece(thread.tid, state, begin_ns, until_ns))
        return thread, begin_ns

    def _woken_by(
        self, thread: _Thread, place: int, since_ns: int, until_ns: int, pieces: list[Piece]
    ) -> tuple[_Thread, int]:
        """Who ended the wait, and when; from then on the thread waited for a processor, or, as nobody knows when that
        was, was in its wait still. Where nobody is known to have ended it, the wait is its own."""
        state = thread.states[place]
        if self._recorded and (thread.wakers[place] or state != POLLED):
            waker, woken_ns, latency = self._threads.get(thread.wakers[place]), thread.woken[place], PREEMPTED
        else:
            waker, latency = self._guessed(thread, state, since_ns, until_ns), state
            woken_ns = waker.last_ran(until_ns) if waker is not None else 0
        if waker is None or waker is thread or not since_ns < woken_ns <= until_ns:
            pieces.append(Piece(thread.tid, state, since_ns, until_ns))
            return thread, since_ns
        if woken_ns < until_ns:
            pieces.append(Piece(thread.tid, latency, woken_ns, until_ns))
        return waker, woken_ns

    def _guessed(self, thread: _Thread, state: str, since_ns: int, until_ns: int) -> _Thread | None:
        if state == JOIN:
            place = bisect_right(self._ends, (until_ns, FAR)) - 1
            if place >= 0 and self._ends[place][1] == thread.tid:
                place -= 1
            if place >= 0 and self._ends[place][0] > since_ns:
                return self._threads[self._ends[place][1]]
        return self._last_that_ran(thread, since_ns, until_ns)

    def _last_that_ran(self, thread: _Thread, since_ns: int, until_ns: int) -> _Thread | None:
        """Between the two times, but for the thread itself."""
        there = np.flatnonzero((self._born_ns < until_ns) & (self._ended_ns > since_ns))
        others = (self._all[place] for place in there if self._all[place] is not thread)
        ran = [(one.last_ran(until_ns), one) for one in others]
        ran = [(last_ns, one) for last_ns, one in ran if last_ns > since_ns and one.ran(since_ns, until_ns) > 0]
        if not ran:
            return None
        latest_ns = max(last_ns for last_ns, _ in ran)
        nearest = [one for last_ns, one in ran if last_ns >= min(latest_ns, until_ns - UNTIL_NS)]
        return max(nearest, key=lambda one: (one.waits, one.ran(since_ns, until_ns), -one.tid))
