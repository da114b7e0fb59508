"""Bounds of statistical tests: from counts at a stated confidence and from the disturbance that was measured, never
from what a quiet machine happens to give.

Two kinds of error are kept apart. What is left to chance (which instruction a sample hits) has an interval at
``CONFIDENCE``. What other programs and the hypervisor do to a measurement is measured beside it, by ``Disturbance``.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import polars as pl

from hwprof.hardware import machine

CONFIDENCE: Final = 1 - 1e-6
"""Of a whole test: a suite with a hundred such tests fails by chance once in ten thousand runs."""

RESTART_S: Final = 20e-6
"""Off by how much a sampling timer may be when its thread is taken off a processor and put back: the kernel restarts it
after 10 µs at least, and the switch itself is charged to neither side the same."""

_COARSE: Final = 6  # CLOCK_MONOTONIC_COARSE, which the scheduler's tick advances
TICK_S: Final = time.clock_getres(_COARSE)
"""The scheduler's tick: what a thread that runs elsewhere is charged with may be told so much later."""
STOLEN_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
"""What stolen time is told in."""


def with_missed(samples: pl.DataFrame, switches: pl.DataFrame) -> pl.DataFrame:
    """Samples with ``missed_ns``: the processor time before each that no sample stands for. A timer that fires late by
    more than its period, as while the hypervisor has the processor, is not made up for: it is seen between two samples
    of a thread that did not leave its processor between them. What is late by less than half a period evens out."""
    before = pl.col("time_ns").shift(1).over("tid", order_by="time_ns")
    left = switches.drop_nulls("out_ns").select("tid", "out_ns").sort("out_ns")
    pairs = samples.with_columns(before_ns=before).sort("time_ns")
    pairs = pairs.join_asof(left, left_on="time_ns", right_on="out_ns", by="tid", check_sortedness=False)
    stayed = pl.col("out_ns").is_null() | (pl.col("out_ns") < pl.col("before_ns"))
    late_ns = pl.col("time_ns") - pl.col("before_ns") - pl.col("cpu_ns")
    return pairs.with_columns(missed_ns=pl.when(stayed & (late_ns > pl.col("cpu_ns") / 2)).then(late_ns).otherwise(0))


def standard_errors(comparisons: int = 1) -> float:
    """How many standard errors the largest of so many comparisons may be off, at ``CONFIDENCE`` for all of them."""
    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / (2 * comparisons))


def different_shares(ours: Counter[Any], theirs: Counter[Any], systematic: float) -> dict[Any, tuple[float, float]]:
    """The shares that differ by more than chance and ``systematic``: two samples of the same work, by what was hit.

    The standard error is that of a difference of two binomial shares, with one more hit and miss each (Agresti and
    Caffo), since many things are hit seldom.
    """
    here, there = ours.total() + 2, theirs.total() + 2
    keys = ours | theirs
    found = {}
    for key in keys:
        one, other = (ours[key] + 1) / here, (theirs[key] + 1) / there
        error = (one * (1 - one) / here + other * (1 - other) / there) ** 0.5
        if abs(one - other) > standard_errors(len(keys)) * error + systematic:
            found[key] = (one, other)
    return found


def assert_every(times_ns: Sequence[int], period_s: float, disturbed: Disturbance) -> None:
    """A thread did something once a period: never sooner, and later only by what it had to wait for a processor, which
    may cost it a whole turn."""
    gaps_s = [(after - before) / 1e9 for before, after in pairwise(times_ns)]
    assert gaps_s, "it did it once at most"
    late_s = period_s + disturbed.waited_s + disturbed.stolen_s + 2 * TICK_S
    assert max(gaps_s) <= late_s, (max(gaps_s), late_s)
    elapsed_s = (times_ns[-1] - times_ns[0]) / 1e9
    assert len(gaps_s) <= elapsed_s / period_s + 1, (len(gaps_s), elapsed_s)


@dataclass
class Disturbance:
    """What others did to some processes meanwhile. Seconds are sums over their threads; those of threads that ended
    meanwhile are missing."""

    stolen_s: float = 0.0
    """Processor time that the hypervisor took from this machine, and that some clocks take for work. It is told in
    ticks, so that one may be missing at each end."""
    waited_s: float = 0.0
    """How long they were ready to run and had no processor."""
    switches: int = 0
    """How often they were taken off a processor, whoever wanted that."""


@contextmanager
def disturbance(*pids: int) -> Iterator[Disturbance]:
    """Measures it while the block runs; without ``pids`` for this process."""
    pids = pids or (os.getpid(),)
    found = Disturbance()
    stolen_ns, before = machine.stolen_ns(), _threads(pids)
    yield found
    after, stolen_after_ns = _threads(pids), machine.stolen_ns()
    if stolen_ns is not None and stolen_after_ns is not None:
        found.stolen_s = (stolen_after_ns - stolen_ns) / 1e9 + 2 * STOLEN_TICK_S * (stolen_after_ns > stolen_ns)
    nothing = (0, 0)
    found.waited_s = sum(waited - before.get(tid, nothing)[0] for tid, (waited, _) in after.items()) / 1e9
    found.switches = sum(switches - before.get(tid, nothing)[1] for tid, (_, switches) in after.items())


def processor_ns(tid: int) -> int:
    """For how long a thread was on a processor so far, by the kernel's account."""
    return int(Path(f"/proc/{tid}/task/{tid}/schedstat").read_text().split()[0])


def _threads(pids: Sequence[int]) -> dict[str, tuple[int, int]]:
    """Of each thread: ns that it waited for a processor, and how often it was taken off one."""
    found = {}
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*"):
            try:
                schedule, status = (task / "schedstat").read_text(), (task / "status").read_text()
            except OSError:  # it has ended
                continue
            switches = sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)
            found[task.name] = (int(schedule.split()[1]), switches)
    return found
