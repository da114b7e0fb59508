"""From when to when threads were there, and what they did between their creation and their first record.

A thread is sampled from when the sampler has heard of it. What it did before is in the kernel's own account of it
(``/proc/PID/task/TID/schedstat``): how long it was on a processor, and how long it waited for one; the rest of that
time it was blocked, nobody knows by what.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from collectors.sampler.records import TaskEvent
from hwprof.run.schema import TABLES, conform

RUNNABLE: Final = "R"
"""Of a thread's state in ``/proc``."""


@dataclass(frozen=True)
class Before:
    """The kernel's account of a thread when its sampling began: until ``time_ns`` it was ``turns`` times on a
    processor, for ``ran_ns``, and waited for one for ``waited_ns``; ``runnable``: it is on one, or waits for one again.
    Of the turn or the wait that it is in, the times may miss all. ``blocked_ns``: when it was seen to be blocked with
    every switch being recorded already; None where it was runnable then."""

    time_ns: int
    ran_ns: int
    waited_ns: int
    turns: int
    runnable: bool
    blocked_ns: int | None = None

    @classmethod
    def of(cls, pid: int, tid: int) -> Before | None:
        """As it is now; None where it has ended, or the kernel keeps no account (CONFIG_SCHED_INFO)."""
        try:
            ran_ns, waited_ns, turns = map(int, Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split())
        except (OSError, ValueError):
            return None
        runnable = _is_runnable(pid, tid)
        return cls(time.monotonic_ns(), ran_ns, waited_ns, turns, runnable) if runnable is not None else None

    def looked_again(self, pid: int, tid: int) -> Before:
        """Once its switches are recorded: between the account and the first of them it may have left its processor."""
        return self if _is_runnable(pid, tid) is not False else replace(self, blocked_ns=time.monotonic_ns())


def _is_runnable(pid: int, tid: int) -> bool | None:
    """None where the thread has ended."""
    try:
        text = Path(f"/proc/{pid}/task/{tid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state = text.rpartition(")")[2].split()[:1]
    return state == [RUNNABLE] if state else None


@dataclass
class Lifetimes:
    """What was heard of a process's threads."""

    sampling_since_ns: int = 0
    born_ns: dict[int, int] = field(default_factory=dict)  # by tid
    ended_ns: dict[int, int] = field(default_factory=dict)
    before: dict[int, Before] = field(default_factory=dict)
    idle: set[int] = field(default_factory=set)  # were on no processor since their sampling began
    reused: set[int] = field(default_factory=set)  # numbers that several threads had one after the other

    def hear(self, created: Iterable[TaskEvent], ended: Iterable[TaskEvent]) -> None:
        """Takes in what the kernel recorded, in any order."""
        for one in created:
            if one.tid in self.born_ns:
                self.reused.add(one.tid)
            self.born_ns[one.tid] = one.time_ns
        self.ended_ns |= {one.tid: one.time_ns for one in ended}

    def sampled(self, tid: int, before: Before | None) -> None:
        """The thread is sampled from now on."""
        if before is not None:
            self.before[tid] = before

    def finished(self, tid: int, counted: int) -> None:
        """It is sampled no more; ``counted``: of the sampled event, by it alone."""
        self.idle -= {tid}
        if not counted:
            self.idle.add(tid)

    def table(self, pid: int, tids: Iterable[int], *, complete: bool) -> pl.DataFrame:
        """The rows of ``lifetimes``. ``complete``: no record was lost, so that a thread whose creation was not heard of
        was there before, and one whose end was not is still there; else only what was heard is told."""
        rows: list[dict[str, Any]] = []
        for tid in tids:
            born_ns, ended_ns = self.born_ns.get(tid), self.ended_ns.get(tid)
            if tid not in self.reused and (complete or (born_ns is not None and ended_ns is not None)):
                rows.append({"pid": pid, "tid": tid, "born_ns": born_ns, "ended_ns": ended_ns})
        names = ("pid", "tid", "born_ns", "ended_ns")
        schema = {name: TABLES["lifetimes"][name] for name in names}
        return conform("lifetimes", pl.DataFrame(rows, schema=schema))

    def with_beginnings(self, switches: pl.DataFrame, pid: int) -> pl.DataFrame:
        """The rows of ``switches`` with those of each thread's time between its creation and its first record, where it
        was created while its process was sampled."""
        first = switches.group_by("tid", maintain_order=True).first()
        came_back = {
            tid: in_ns for tid, out_ns, in_ns in first.select("tid", "out_ns", "in_ns").iter_rows() if out_ns is None
        }
        recorded = set(first["tid"].to_list())
        rows, replaced = list[dict[str, Any]](), list[int]()
        for tid, before in self.before.items():
            born_ns = self.born_ns.get(tid)
            if born_ns is None or born_ns < self.sampling_since_ns or tid in self.reused:
                continue
            in_ns = came_back.get(tid)
            replaced += [tid] if in_ns is not None else []
            asleep = tid in self.idle and tid not in recorded
            rows += ({"tid": tid, **row} for row in _beginning(born_ns, before, in_ns, asleep=asleep))
        if not rows and not replaced:
            return switches
        kept = switches.filter(pl.col("out_ns").is_not_null() | ~pl.col("tid").is_in(replaced))
        schema = {"tid": pl.Int32, "out_ns": pl.Int64, "in_ns": pl.Int64, "preempted": pl.Boolean}
        more = pl.DataFrame(rows, schema=schema).with_columns(pid=pl.lit(pid, pl.Int32))
        return conform("switches", pl.concat([kept, more], how="diagonal").sort(pl.coalesce("out_ns", "in_ns")))


def _beginning(born_ns: int, before: Before, in_ns: int | None, *, asleep: bool) -> Iterator[dict[str, Any]]:
    """The times off a processor before the first record, which is that of coming back at ``in_ns``, or (None) one of
    work: it was on a processor then. ``asleep``: there is no record, and it was on none since."""
    off = asleep or in_ns is not None
    left = off and before.blocked_ns is not None and (in_ns is None or in_ns > before.blocked_ns)
    until = in_ns if in_ns is not None else before.time_ns
    if before.turns == 0 and not left:  # it has not run yet: it waits for a processor from the first moment on
        if asleep or (in_ns is not None and in_ns > born_ns):
            yield {"out_ns": born_ns, "in_ns": in_ns, "preempted": True}
        return
    ran_ns, waited_ns = before.ran_ns, before.waited_ns if before.turns else before.time_ns - born_ns
    if (left and before.runnable) or (not off and before.turns == 1):
        # it was in a turn when the account was taken, which misses the last part of that
        ran_ns = max(ran_ns, before.time_ns - born_ns - waited_ns)
    first_ns = min(born_ns + waited_ns, until)
    if first_ns > born_ns:
        yield {"out_ns": born_ns, "in_ns": first_ns, "preempted": True}
    blocked_ns = min(first_ns + ran_ns, until)
    if off and (asleep or blocked_ns < until):
        yield {"out_ns": blocked_ns, "in_ns": in_ns, "preempted": before.runnable and not left}
    elif not off and blocked_ns < until:  # it is back at work, nobody knows since when: it ran last
        yield {"out_ns": first_ns, "in_ns": first_ns + until - blocked_ns, "preempted": False}
