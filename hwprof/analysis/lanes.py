"""Threads that work one after the other are one at a time: which of them continue one another's work.

A lane is what one thread could have done: a thread, and those that were created when it had done its work. A model that
starts a thread for each task has many threads and few lanes; what shares work at a time are lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import polars as pl

from hwprof.analysis.lifetimes import FAR
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN
from hwprof.analysis.states import ABSENT

DONE: Final = 0.9
"""Of its work: with so much of it done, a thread that is going to end counts as done. Its end itself comes later than
the moment in which another one may be created, and takes processor time as well."""


def lanes(sampled: pl.DataFrame, lives: pl.DataFrame) -> dict[int, int]:
    """Of each thread that was sampled the first one of its lane; most threads are their lane's only one.

    ``sampled`` as ``sampled_kernels.sampled`` makes it, ``lives`` as ``lifetimes.lives`` of the same pass. A thread
    that was there to the end, or that only ever waited, is continued by none.
    """
    worked, whole = pl.col("cpu_ns").cum_sum().over("tid"), pl.col("cpu_ns").sum().over("tid")
    done = (
        sampled.filter(pl.col("code").ne_missing(WAITING_DOMAIN))
        .sort("tid", "time_ns")
        .filter(worked >= DONE * whole)
        .group_by("tid")
        .agg(done_ns=pl.col("time_ns").min())
    )
    threads = (
        sampled.select("tid")
        .unique()
        .join(lives, on="tid", how="left")
        .join(done, on="tid", how="left")
        .select("tid", "begin_ns", until_ns=pl.when(pl.col("end_ns") < FAR).then("done_ns").fill_null(FAR))
        .sort("begin_ns", "tid")
    )
    found: dict[int, int] = {}
    occupied: dict[int, int] = {}  # of each lane, until when
    for tid, begin_ns, until_ns in threads.iter_rows():
        # of several that are free the first one: what seems to overlap by an accident is a lane of little work
        lane = next((lane for lane, busy_ns in occupied.items() if busy_ns <= begin_ns), tid)
        found[tid], occupied[lane] = lane, until_ns
    return found


def in_lanes(
    states: Iterable[tuple[int, str, float, int]], lanes: Mapping[int, int], elapsed_ns: float
) -> list[tuple[int, str, float, int]]:
    """(lane, state, nanoseconds, samples) of the same of threads. As those of a thread, a lane's times add up to
    ``elapsed_ns``: while another thread of it was there, a thread's absence is none of the lane's."""
    sums: dict[tuple[int, str], tuple[float, int]] = {}
    members: dict[int, set[int]] = {}
    for tid, state, ns, samples in states:
        lane = lanes.get(tid, tid)
        members.setdefault(lane, set()).add(tid)
        before_ns, before = sums.get((lane, state), (0.0, 0))
        sums[lane, state] = before_ns + ns, before + samples
    others_ns = {lane: (len(tids) - 1) * elapsed_ns for lane, tids in members.items()}
    return [
        (lane, state, max(0.0, ns - others_ns[lane]) if state == ABSENT else ns, samples)
        for (lane, state), (ns, samples) in sums.items()
    ]
