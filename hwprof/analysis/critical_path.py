"""Which thread the inference waited for at every moment: the critical path, as a dependency analysis would give it.

The path begins at the end of the inference and goes back. While the calling thread is at work, or off its processor on
its own account (I/O, sleep), the path lies on it. A wait off its processor that another thread ends (a lock, a
condition, the interpreter, a barrier of pthreads, the end of a thread) is followed to the one that ended it, and so on
(``wait_chains``); what the calling thread waited for is then the path's ``cause``.

While it waits in the OpenMP runtime, the path lies on the one of its team that it waits for: a thread at work, of
several the one that works longest; where none is at work, one that was at work and was taken off its processor, or that
is itself blocked. Where all of them are seen to wait too, the time goes by with handing over: the end was reached, and
the threads do not know it yet. And where nothing tells what the others did, the wait stays the calling thread's own,
and ``UNOBSERVED``. A calling thread that was taken off its processor while it waited holds nobody up: what it waited
for counts, unless nothing else is in the way. Of another one nobody knows whether it was given work meanwhile: a team
waits for all of its threads.

Of a team, who waits for whom is read off at the calling thread's own moments, whose times are exact sums
(``thread_states``). What others did at these moments is known exactly while they were off their processors, and else by
their nearest sample within the same call of a layer: the sums hold over many calls, a single moment is known to a
sampling period only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis.states import BARRIER_LATENCY, BLOCKED, BUSY, PREEMPTED, TEAM_WAITS, UNKNOWN, UNOBSERVED
from hwprof.analysis.wait_chains import MUTUAL, WaitChains

Numbers = NDArray[np.int64]
Strings = NDArray[np.object_]

FOLLOWED: Final = sorted(MUTUAL - {*TEAM_WAITS})
"""States off a processor that another thread ends, of which the team of OpenMP knows nothing."""

HELD_UP: Final = ("lock", "GIL", "I/O", "page fault", "memory map", "child process", "stopped")
"""What keeps a thread from work that it has; the other reasons are those of threads that have none."""

GRAIN_NS: Final = 1_000_000
"""Times off a processor are looked at in pieces of at most so much: whom one waits for may change."""

OTHER_CALL: Final = 1e18
"""Further away than anything in the same call."""

_IDLE, _UNKNOWN, _HELD_UP, _OFF, _AT_WORK = range(5)


@dataclass(frozen=True)
class _Thread:
    """What one other thread did, by time."""

    tid: int
    times: Numbers  # of its samples
    busy: NDArray[np.bool_]
    calls: Numbers
    weights: Numbers
    run_ends: Numbers  # until when it was at work without a break, as far as its samples tell
    off_begins: Numbers
    off_ends: Numbers
    off_states: Strings
    in_team: bool


def path_moments(moments: pl.DataFrame, calling_tid: int, absences: pl.DataFrame) -> pl.DataFrame:
    """The calling thread's moments (``thread_states.moments``), each with the thread that the path lies on (``on``) and
    its state there (``doing``); where that is another one, and no team's, with what the calling thread waited for
    (``cause``). Long ones are cut into several. ``absences``: as ``thread_states`` makes them of all threads."""
    calling = moments.filter(pl.col("tid") == calling_tid)
    waits = ~pl.col("sampled") & pl.col("state").is_in(FOLLOWED)
    followed = _followed(calling.filter(waits), calling_tid, WaitChains(absences, moments["tid"].unique().to_list()))
    own = _cut(calling.filter(~waits))
    spun = _waited_before(_thread(calling_tid, calling), own)
    others = [
        _thread(int(tid), rows) for (tid,), rows in moments.group_by(["tid"], maintain_order=True) if tid != calling_tid
    ]
    states = own["state"].to_numpy()
    on = np.full(own.height, calling_tid, dtype=np.int64)
    doing = states.astype(object)
    looks = np.flatnonzero(np.isin(states, TEAM_WAITS) | spun)
    if len(looks):
        found_on, found = _waited_for(own[looks], others, calling_tid)
        own_fault = spun[looks] & np.isin(found, (BARRIER_LATENCY, UNOBSERVED))
        found = np.where(own_fault, "", found)
        on[looks], doing[looks] = found_on, np.where(found == "", doing[looks], found)
    placed = own.with_columns(
        on=pl.Series(on, dtype=pl.Int32), doing=pl.Series(doing, dtype=pl.String), cause=pl.lit(None, pl.String)
    )
    return pl.concat([placed, followed]).sort("time_ns")


def _followed(waits: pl.DataFrame, calling_tid: int, chains: WaitChains) -> pl.DataFrame:
    """Waits, each cut into the pieces of its chain."""
    found = [chains.follow(calling_tid, *row) for row in waits.select("begin_ns", "time_ns").iter_rows()]
    rows = np.repeat(np.arange(len(found)), [len(pieces) for pieces in found])
    flat = [one for pieces in found for one in pieces]
    begins, ends = (np.array([getattr(one, name) for one in flat], dtype=np.int64) for name in ("begin_ns", "end_ns"))
    cut = waits[rows].with_columns(
        begin_ns=pl.Series(begins, dtype=pl.Int64),
        time_ns=pl.Series(ends, dtype=pl.Int64),
        ns=pl.Series(ends - begins, dtype=pl.Int64),
        on=pl.Series([one.tid for one in flat], dtype=pl.Int32),
        doing=pl.Series([one.state for one in flat], dtype=pl.String),
    )
    return cut.with_columns(cause=pl.when(pl.col("on") != calling_tid).then("state"))


def _waited_before(calling: _Thread, own: pl.DataFrame) -> NDArray[np.bool_]:
    """Which moments it was off its processor while it only waited for others."""
    off = (own["state"] == PREEMPTED).to_numpy()
    near, same_call = _nearest(calling, own["time_ns"].to_numpy(), own["call"].to_numpy())
    waits = off & same_call
    waits[waits] = ~calling.busy[near[waits]]
    return waits


def _cut(own: pl.DataFrame) -> pl.DataFrame:
    """Waits off a processor in pieces of at most ``GRAIN_NS``; ``time_ns`` is then the middle of each."""
    long = ~pl.col("sampled") & pl.col("state").is_in([*TEAM_WAITS, PREEMPTED])
    pieces = own.filter(long).with_columns(pieces=(pl.col("ns") - 1) // GRAIN_NS + 1)
    if pieces.is_empty():
        return own
    row = np.repeat(np.arange(pieces.height), pieces["pieces"].to_numpy())
    counts = pieces["pieces"].to_numpy()
    which = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins, ns = pieces["begin_ns"].to_numpy()[row], pieces["ns"].to_numpy()[row]
    edges = [begins + ns * step // counts[row] for step in (which, which + 1)]
    cut = pieces.drop("pieces")[row].with_columns(
        time_ns=pl.Series((edges[0] + edges[1]) // 2), begin_ns=pl.Series(edges[0]), ns=pl.Series(edges[1] - edges[0])
    )
    return pl.concat([own.filter(~long), cut.select(own.columns)]).sort("time_ns")


def _thread(tid: int, rows: pl.DataFrame) -> _Thread:
    sampled, off = rows.filter("sampled"), rows.filter(~pl.col("sampled")).sort("begin_ns")
    busy = (sampled["state"] == BUSY).to_numpy()
    calls, times = sampled["call"].to_numpy(), sampled["time_ns"].to_numpy()
    last = np.append((busy[1:] != busy[:-1]) | (calls[1:] != calls[:-1]), True) if len(times) else busy
    ends = np.flatnonzero(last)
    states = off["state"].to_numpy().astype(object)
    return _Thread(
        tid=tid,
        times=times,
        busy=busy,
        calls=calls,
        weights=sampled["ns"].to_numpy(),
        run_ends=times[ends[np.searchsorted(ends, np.arange(len(times)))]] if len(times) else times,
        off_begins=off["begin_ns"].to_numpy(),
        off_ends=off["time_ns"].to_numpy(),
        off_states=states,
        in_team=bool((~busy).any() or np.isin(states, TEAM_WAITS).any()),
    )


def _waited_for(places: pl.DataFrame, others: list[_Thread], calling_tid: int) -> tuple[Numbers, Strings]:
    """(thread, state) of what each of the moments, in which it waits for its team, waits for."""
    times, calls = places["time_ns"].to_numpy(), places["call"].to_numpy()
    best = np.full(len(times), _IDLE)
    until = np.full(len(times), np.iinfo(np.int64).min)
    on = np.full(len(times), calling_tid, dtype=np.int64)
    doing = np.full(len(times), BARRIER_LATENCY, dtype=object)
    for thread in (one for one in others if one.in_team):
        rank, ends, states = _at(thread, times, calls)
        better = (rank > best) | ((rank == best) & (rank > _IDLE) & (ends > until))
        best, until = np.where(better, rank, best), np.where(better, ends, until)
        on, doing = np.where(better, thread.tid, on), np.where(better, states, doing)
    unknown = best == _UNKNOWN
    return np.where(unknown, calling_tid, on), np.where(unknown, UNOBSERVED, doing)


def _at(thread: _Thread, times: Numbers, calls: Numbers) -> tuple[Numbers, Numbers, Strings]:
    """(rank, until when, state) of a thread at each of the times."""
    states = np.full(len(times), "", dtype=object)
    near, same_call = _nearest(thread, times, calls)
    at_work = near >= 0
    at_work[at_work] = thread.busy[near[at_work]]
    states[at_work] = BUSY
    rank = np.where(at_work, _AT_WORK, np.where(same_call, _IDLE, _UNKNOWN))
    ends = times.copy()
    ends[at_work] = np.maximum(thread.run_ends[near[at_work]], times[at_work])
    if len(thread.off_begins):
        place = np.searchsorted(thread.off_begins, times, side="right") - 1
        off = (place >= 0) & (times < thread.off_ends[place])
        away = thread.off_states[place]
        rank = np.where(off, _ranks(away), rank)
        ends, states = np.where(off, thread.off_ends[place], ends), np.where(off, away, states)
    return rank, ends, states


def _ranks(states: Strings) -> Numbers:
    """Of threads off their processors."""
    held_up = np.where(
        np.isin(states, HELD_UP), _HELD_UP, np.where(np.isin(states, (BLOCKED, UNKNOWN)), _UNKNOWN, _IDLE)
    )
    return np.where(states == PREEMPTED, _OFF, held_up)


def _nearest(thread: _Thread, times: Numbers, calls: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """The thread's sample that tells most of each of the times: the nearest in the same call (true), else one that
    stands for a stretch that reaches there; -1 where there is neither."""
    count = len(thread.times)
    if not count:
        return np.full(len(times), -1, dtype=np.int64), np.zeros(len(times), dtype=bool)
    after = np.searchsorted(thread.times, times)
    best, best_cost = np.full(len(times), -1, dtype=np.int64), np.full(len(times), np.inf)
    for candidate in (after - 1, after):
        inside = np.clip(candidate, 0, count - 1)
        distance = np.abs(thread.times[inside] - times).astype(np.float64)
        same = thread.calls[inside] == calls
        reaches = distance <= thread.weights[inside]
        cost = np.where(same, distance, np.where(reaches, distance + OTHER_CALL, np.inf))
        cost = np.where((candidate >= 0) & (candidate < count), cost, np.inf)
        best, best_cost = np.where(cost < best_cost, inside, best), np.minimum(cost, best_cost)
    return best, best_cost < OTHER_CALL
