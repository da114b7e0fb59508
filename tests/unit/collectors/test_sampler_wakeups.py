"""Who woke whom: the tracepoint's description, its records, and the waits that they ended."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from collectors.sampler.record_decoder import Decoder
from collectors.sampler.wakeups import EVENT, Tracepoint, Wakeups, allowed_tracepoint, tracepoint, with_wakers
from hwprof.hardware import perf_event, perf_sampling
from hwprof.run.schema import TABLES, conform
from tests.support.sampler_records import Sample, record

FORMAT = """name: sched_waking
ID: 375
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;
"""
KNOWN = Tracepoint(375, 2, 24)
EVENT_NUMBER = 55


def described(root: Path, text: str, folder: str = "sys/kernel/tracing") -> Path:
    file = root / folder / EVENT
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return root


def woke(waker: int, woken: int, time_ns: int, flags: int = 0, event: int = EVENT_NUMBER) -> bytes:
    """A record as Linux 6.18 writes it."""
    fields = struct.pack("<HBBi16siii", 375, flags, 0, waker, b"python", woken, 120, 1)
    body = struct.pack("<QQIIQIIQ", event, 0xFFFF_0000, 100, waker, time_ns, 0, 0, 1)
    return record(perf_sampling.RECORD_SAMPLE, 1, body + struct.pack("<I", len(fields)) + fields)


@pytest.mark.parametrize("folder", ["sys/kernel/tracing", "sys/kernel/debug/tracing"])
def test_the_kernel_describes_its_tracepoint(tmp_path: Path, folder: str) -> None:
    assert tracepoint(described(tmp_path, FORMAT, folder)) == KNOWN


@pytest.mark.parametrize(
    "text",
    ["", FORMAT.replace("ID: 375\n", ""), FORMAT.replace(" pid;", " who;"), FORMAT.replace("offset:24", "offset:23")],
)
def test_what_is_described_otherwise_is_not_used(tmp_path: Path, text: str) -> None:
    assert tracepoint(described(tmp_path, text)) is None


def test_who_may_not_record_it_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(perf_event, "open_event", refused)
    assert allowed_tracepoint(0, described(tmp_path, FORMAT)) is None
    assert allowed_tracepoint(0, tmp_path / "nothing") is None


def test_records_tell_who_woke_whom() -> None:
    """But for those of interrupts; samples beside them are samples still."""
    stream = [
        woke(7, 8, 50),
        Sample(time_ns=51).record(reading=False),
        woke(7, 9, 60, flags=0x08),
        woke(8, 9, 70, flags=0x01),
        woke(8, 9, 75, flags=0x10),
        woke(9, 2**30, 80),
    ]
    decoder = Decoder(reading=False, wakeup_events={EVENT_NUMBER}, tracepoint=KNOWN)
    batch, used = decoder.decode(b"".join(stream))
    found = batch.wakeups
    rows = list(zip(found.time_ns.tolist(), found.waker.tolist(), found.woken.tolist(), strict=True))
    assert rows == [(50, 7, 8), (70, 8, 9), (80, 9, 2**30)]
    assert batch.samples.time_ns.tolist() == [51] and used == len(b"".join(stream))


def test_a_record_that_is_cut_short_tells_nothing() -> None:
    whole = woke(7, 8, 50)
    short = whole[:64]
    cut = struct.pack("<IHH", perf_sampling.RECORD_SAMPLE, 1, len(short)) + short[8:]
    batch, _ = Decoder(reading=False, wakeup_events={EVENT_NUMBER}, tracepoint=KNOWN).decode(cut)
    assert not len(batch.wakeups.time_ns)


def test_a_wait_has_the_last_wake_up_before_it_came_back() -> None:
    rows = [(1, 10, 20, False), (1, 30, 40, True), (1, 50, 60, False), (2, 10, 20, False), (1, 70, None, False)]
    names = {"tid": pl.Int32, "out_ns": pl.Int64, "in_ns": pl.Int64, "preempted": pl.Boolean}
    switches = conform("switches", pl.DataFrame(rows, schema=names, orient="row"))
    told = [(15, 5, 1), (18, 6, 1), (35, 7, 1), (45, 8, 1), (19, 9, 3), (75, 9, 1)]
    wakeups = Wakeups(*(np.array(column, dtype=np.int64) for column in zip(*told, strict=True)))
    found = with_wakers(switches, wakeups)
    assert found.schema == TABLES["switches"]
    assert found.select("woken_ns", "waker").rows() == [(18, 6), (None, None), (None, None), (None, None), (None, None)]
    assert with_wakers(switches, Wakeups.none())["waker"].null_count() == switches.height
