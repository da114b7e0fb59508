"""From the bytes of ring buffers to columns: perf's records decoded whole arrays at a time.

Every event here writes the same fields, so that records of all rings can be decoded as one stream: samples are
identifier, address, pid and tid, time, processor, period, then (``reading``) the group's values, then the call chain;
every other record ends with pid and tid, time, processor and identifier. Samples of switch-outs, which show why
threads leave their processor, and of wake-ups are known by their identifier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np

from collectors.sampler.call_chains import Chains
from collectors.sampler.record_offsets import WORD, record_offsets
from collectors.sampler.records import Batch, Mapping, Numbers, Renaming, Samples, Switches, TaskEvent, Words
from collectors.sampler.switch_outs import SwitchOut, parse_switch_out
from collectors.sampler.wakeups import Tracepoint, Wakeups, parse_wakeups
from hwprof.hardware.perf_event import FORMAT_GROUP, FORMAT_TOTAL_TIME_ENABLED, FORMAT_TOTAL_TIME_RUNNING
from hwprof.hardware.perf_sampling import (
    CPUMODE_MASK,
    MISC_SWITCH_OUT,
    MISC_SWITCH_OUT_PREEMPT,
    RECORD_COMM,
    RECORD_EXIT,
    RECORD_FORK,
    RECORD_LOST,
    RECORD_LOST_SAMPLES,
    RECORD_MMAP2,
    RECORD_SAMPLE,
    RECORD_SWITCH,
    RECORD_THROTTLE,
    SAMPLE_CALLCHAIN,
    SAMPLE_CPU,
    SAMPLE_IDENTIFIER,
    SAMPLE_IP,
    SAMPLE_PERIOD,
    SAMPLE_READ,
    SAMPLE_TID,
    SAMPLE_TIME,
)

COMMON: Final = SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_IDENTIFIER
"""What every event writes with every record."""

SAMPLED: Final = COMMON | SAMPLE_IP | SAMPLE_PERIOD | SAMPLE_CALLCHAIN

GROUP_FORMAT: Final = FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING | FORMAT_GROUP

_IDENTIFIER, _ADDRESS, _THREAD, _TIME, _CPU, _PERIOD, _REST = range(1, 8)  # words of a sample, after its header
_GROUP_TIMES: Final = 3  # number of values, time enabled, time running
_END_THREAD, _END_TIME, _END_CPU = -4, -3, -2  # words of any other record, from its end
_LOW: Final = np.uint64(0xFFFF_FFFF)
_HALF: Final = np.uint64(32)
_MOST: Final = np.uint64(1 << 16)  # no record has so many words


def sample_type(*, reading: bool) -> int:
    """What a sample is to hold; ``reading``: the values of its group too."""
    return SAMPLED | SAMPLE_READ if reading else SAMPLED


class Decoder:
    """Decodes a stream block by block, so that memory stays bounded. ``damaged_bytes`` is what of whole records made no
    sense. ``switch_out_events``: the numbers of the events that sample switch-outs; ``wakeup_events``: of those that
    record wake-ups by the ``tracepoint``."""

    def __init__(
        self,
        *,
        reading: bool,
        switch_out_events: Collection[int] = (),
        wakeup_events: Collection[int] = (),
        tracepoint: Tracepoint | None = None,
    ) -> None:
        self._reading = reading
        self._switch_out_events = np.array(sorted(switch_out_events), dtype=np.uint64)
        self._wakeup_events = np.array(sorted(wakeup_events), dtype=np.uint64)
        self._tracepoint = tracepoint
        self.chains = Chains()
        self.damaged_bytes = 0

    def decode(self, data: bytes | memoryview) -> tuple[Batch, int]:
        """The whole records at the beginning of ``data``, and how many bytes they have. What is behind them is a record
        that is cut off, or one whose size is impossible, after which the next one's begin is unknown."""
        at, used = record_offsets(data)
        return self._batch(np.frombuffer(data, dtype=np.uint64, count=used // WORD), at), used

    def _batch(self, words: Words, at: Numbers) -> Batch:
        headers = words[at]
        kind = (headers & _LOW).astype(np.int64)
        misc = (headers >> _HALF & np.uint64(0xFFFF)).astype(np.int64)
        end = at + (headers >> np.uint64(48)).astype(np.int64) // WORD

        def of(which: int) -> tuple[Numbers, Numbers, Numbers]:
            chosen = np.flatnonzero(kind == which)
            return at[chosen], misc[chosen], end[chosen]

        sampled = of(RECORD_SAMPLE)
        identifier = words[sampled[0] + _IDENTIFIER]
        leaves, wakes = (np.isin(identifier, events) for events in (self._switch_out_events, self._wakeup_events))
        return Batch(
            samples=self._samples(words, *(part[~(leaves | wakes)] for part in sampled)),
            switch_outs=self._switch_outs(words, sampled[0][leaves], sampled[2][leaves]),
            wakeups=self._wakeups(words, sampled[0][wakes], sampled[2][wakes]),
            switches=_switches(words, *of(RECORD_SWITCH)),
            mappings=list(_mappings(words, *of(RECORD_MMAP2))),
            created_threads=list(_task_events(words, *of(RECORD_FORK))),
            ended_threads=list(_task_events(words, *of(RECORD_EXIT))),
            renamings=list(_renamings(words, *of(RECORD_COMM))),
            lost=_total(words, of(RECORD_LOST)[0] + 2) + _total(words, of(RECORD_LOST_SAMPLES)[0] + 1),
            throttled=len(of(RECORD_THROTTLE)[0]),
        )

    def _samples(self, words: Words, at: Numbers, misc: Numbers, end: Numbers) -> Samples:
        at, misc, count, chain_at = self._whole(words, at, misc, end)
        word = words.take  # twice as fast as words[…]
        thread, mode = word(at + _THREAD), misc & CPUMODE_MASK
        nothing = np.zeros(len(at), dtype=np.int64)
        return Samples(
            event=word(at + _IDENTIFIER),
            address=word(at + _ADDRESS),
            pid=(thread & _LOW).astype(np.int32),
            tid=(thread >> _HALF).astype(np.int32),
            time_ns=word(at + _TIME).view(np.int64),
            cpu=(word(at + _CPU) & _LOW).astype(np.int32),
            period=word(at + _PERIOD).view(np.int64),
            mode=mode.astype(np.int32),
            enabled_ns=word(at + _REST + 1).view(np.int64) if self._reading else nothing,
            running_ns=word(at + _REST + 2).view(np.int64) if self._reading else nothing,
            values=_values(words, at + _REST + _GROUP_TIMES, count),
            chain=self.chains.intern(words, chain_at + 1, word(chain_at).view(np.int64), mode),
        )

    def _wakeups(self, words: Words, at: Numbers, end: Numbers) -> Wakeups:
        return parse_wakeups(words, at, end, self._tracepoint) if self._tracepoint is not None else Wakeups.none()

    def _switch_outs(self, words: Words, at: Numbers, end: Numbers) -> list[SwitchOut]:
        found = []
        for begin, until in zip(at.tolist(), end.tolist(), strict=True):
            one = parse_switch_out(words[begin:until].copy())
            if one is None:
                self.damaged_bytes += WORD * (until - begin)
            else:
                found.append(one)
        return found

    def _whole(
        self, words: Words, at: Numbers, misc: Numbers, end: Numbers
    ) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """(begin, misc, number of values, begin of the chain) of the samples whose parts fit into them; the others are
        damaged, and count as torn."""
        count = np.zeros(len(at), dtype=np.int64)
        chain_at = at + _REST
        if self._reading:
            count = np.minimum(words.take(chain_at, mode="clip"), _MOST).astype(np.int64)
            chain_at = chain_at + _GROUP_TIMES + count
        length = np.minimum(words.take(chain_at, mode="clip"), _MOST).astype(np.int64)
        fits = chain_at + 1 + length <= end
        self.damaged_bytes += WORD * int((end - at)[~fits].sum())
        return at[fits], misc[fits], count[fits], chain_at[fits]


def _values(words: Words, at: Numbers, count: Numbers) -> Numbers:
    width = int(count.max()) if len(count) else 0
    values = np.zeros((len(at), width), dtype=np.int64)
    for column in range(width):
        there = words.take(at + column, mode="clip").view(np.int64)
        values[:, column] = np.where(count > column, there, 0)
    return values


def _switches(words: Words, at: Numbers, misc: Numbers, end: Numbers) -> Switches:
    thread = words[end + _END_THREAD]
    return Switches(
        pid=(thread & _LOW).astype(np.int32),
        tid=(thread >> _HALF).astype(np.int32),
        time_ns=words[end + _END_TIME].astype(np.int64),
        cpu=(words[end + _END_CPU] & _LOW).astype(np.int32),
        out=(misc & MISC_SWITCH_OUT) != 0,
        preempted=(misc & MISC_SWITCH_OUT_PREEMPT) != 0,
    )


def _mappings(words: Words, at: Numbers, misc: Numbers, end: Numbers) -> Iterator[Mapping]:
    for begin, until in zip(at.tolist(), end.tolist(), strict=True):
        yield Mapping(
            time_ns=int(words[until + _END_TIME]),
            pid=int(words[begin + 1] & _LOW),
            address=int(words[begin + 2]),
            size_bytes=int(words[begin + 3]),
            offset_bytes=int(words[begin + 4]),
            file=_text(words[begin + 9 : until + _END_THREAD]).decode(errors="surrogateescape"),
            protection=int(words[begin + 8] & _LOW),
        )


def _task_events(words: Words, at: Numbers, misc: Numbers, end: Numbers) -> Iterator[TaskEvent]:
    for begin in at.tolist():
        yield TaskEvent(
            time_ns=int(words[begin + 3]), pid=int(words[begin + 1] & _LOW), tid=int(words[begin + 2] & _LOW)
        )


def _renamings(words: Words, at: Numbers, misc: Numbers, end: Numbers) -> Iterator[Renaming]:
    for begin, until in zip(at.tolist(), end.tolist(), strict=True):
        yield Renaming(
            pid=int(words[begin + 1] & _LOW),
            tid=int(words[begin + 1] >> _HALF),
            name=_text(words[begin + 2 : until + _END_THREAD]).decode(errors="replace"),
        )


def _text(words: Words) -> bytes:
    """Up to its end mark."""
    return words.tobytes().split(b"\0", 1)[0]


def _total(words: Words, at: Numbers) -> int:
    return int(words[at].sum())
