"""Who woke whom: the kernel's tracepoint ``sched_waking``, recorded on every thread that wakes another one.

A record is written by the thread that wakes; that it woke within an interrupt (a timer, a device) is nobody's doing.
Tracepoints take CAP_PERFMON, or ``kernel.perf_event_paranoid`` -1, and a mounted tracefs that this user may read: their
numbers, and where their fields stand, are in files there (Documentation/trace/events.rst).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.hardware import perf_event, perf_sampling
from hwprof.hardware.machine import ROOT
from hwprof.hardware.perf_sampling import SamplingAttributes
from hwprof.run.schema import conform

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]

TRACEFS: Final = ("sys/kernel/tracing", "sys/kernel/debug/tracing")
EVENT: Final = "events/sched/sched_waking/format"
IN_INTERRUPT: Final = 0x08 | 0x10
"""Of ``common_flags``: in a hardware or software interrupt (``enum trace_flag_type``)."""

_TID, _TIME, _SIZE = 3, 4, 7  # words of a record; the size takes half of one, the tracepoint's fields follow it
_FIELDS_AT: Final = 8 * _SIZE + 4
_FIELD: Final = re.compile(r"field:[^;]*?(\w+);\s*offset:(\d+);\s*size:(\d+);")


@dataclass(frozen=True)
class Tracepoint:
    """``sched_waking``: its number, and at which byte of its fields it says in what it happened and who is woken."""

    number: int
    flags_at: int
    woken_at: int

    def attributes(self, identifying: int) -> SamplingAttributes:
        """The event on a thread; ``identifying``: what every record holds."""
        parts = perf_sampling.SAMPLE_IP | perf_sampling.SAMPLE_PERIOD | perf_sampling.SAMPLE_RAW
        return SamplingAttributes(
            perf_event.TYPE_TRACEPOINT, self.number, period=1, sample_type=identifying | parts, disabled=True
        )


def tracepoint(root: Path = ROOT) -> Tracepoint | None:
    """As this kernel has it; None where its file cannot be read, or says something else."""
    for folder in TRACEFS:
        try:
            text = (root / folder / EVENT).read_text()
        except OSError:
            continue
        number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
        fields = {name: (int(at), int(size)) for name, at, size in _FIELD.findall(text)}
        flags_at, woken_at = fields.get("common_flags"), fields.get("pid")
        if number and flags_at and woken_at and (flags_at[1], woken_at[1], woken_at[0] % 4) == (1, 4, 0):
            return Tracepoint(int(number[1]), flags_at[0], woken_at[0])
    return None


def allowed_tracepoint(identifying: int, root: Path = ROOT) -> Tracepoint | None:
    """The tracepoint, where this user may record it: tried out on the calling thread."""
    found = tracepoint(root)
    if found is None:
        return None
    try:
        os.close(perf_event.open_event(found.attributes(identifying)))
    except OSError:
        return None
    return found


@dataclass
class Wakeups:
    """Columns of the same length: when which thread woke which."""

    time_ns: Numbers
    waker: Numbers
    woken: Numbers

    @classmethod
    def none(cls) -> Wakeups:
        """No rows."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(3)))


def parse_wakeups(words: Words, at: Numbers, end: Numbers, known: Tracepoint) -> Wakeups:
    """Of records that begin and end at these words; those that are cut short, and those of interrupts, are left out."""
    whole = at[8 * at + _FIELDS_AT + known.woken_at + 4 <= 8 * end]
    flags = words.view(np.uint8)[8 * whole + _FIELDS_AT + known.flags_at]
    own = whole[(flags & IN_INTERRUPT) == 0]
    woken = words.view(np.int32)[2 * own + (_FIELDS_AT + known.woken_at) // 4]
    return Wakeups(
        time_ns=words[own + _TIME].astype(np.int64),
        waker=(words[own + _TID] >> np.uint64(32)).astype(np.int64),
        woken=woken.astype(np.int64),
    )


def with_wakers(switches: pl.DataFrame, wakeups: Wakeups) -> pl.DataFrame:
    """The rows of ``switches`` with ``woken_ns`` and ``waker``: of each wait of a thread's own accord, the
    last wake-up before it came back."""
    table = pl.DataFrame(
        {"tid": wakeups.woken, "woken_ns": wakeups.time_ns, "waker": wakeups.waker},
        schema={"tid": pl.Int32, "woken_ns": pl.Int64, "waker": pl.Int32},
    ).sort("woken_ns")
    numbered = switches.drop("woken_ns", "waker", strict=False).with_row_index("row")
    found = (
        numbered.filter(pl.col("out_ns").is_not_null() & pl.col("in_ns").is_not_null() & ~pl.col("preempted"))
        .sort("in_ns")
        .join_asof(table, left_on="in_ns", right_on="woken_ns", by="tid", check_sortedness=False)
        .filter(pl.col("woken_ns") > pl.col("out_ns"))
        .select("row", "woken_ns", "waker")
    )
    return conform("switches", numbered.join(found, on="row", how="left", maintain_order="left").drop("row"))
