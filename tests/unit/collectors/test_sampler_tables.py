"""Samples and switches as rows: what a sample stands for, who called, and how long threads were away."""

from __future__ import annotations

import os
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.sampler import tables
from collectors.sampler.record_file import Recording, decode_all
from collectors.sampler.records import Mapping
from collectors.sampler.sampling_events import CPU_CLOCK_EVENT, SamplingEvent
from hwprof.hardware.pmu import Code
from hwprof.run.schema import TABLES
from tests.support.fake_perf import countable
from tests.support.sampler_records import CONTEXT_USER, KERNEL, Other, Sample, switch

MEMBERS = (countable("instructions"), countable("fills"), countable("own-fills"))
BIG = SamplingEvent("cycles", Code(0, 0), "cpu_core", MEMBERS, (1, -1))
SMALL = SamplingEvent("cycles", Code(0, 0), "cpu_atom", MEMBERS[:1])
BARE = SamplingEvent("cycles", Code(0, 0), "cpu_lowpower")


def decoded(stream: Sequence[Sample | Other], *, reading: bool = True) -> Recording:
    return decode_all(memoryview(b"".join(one.record(reading=reading) for one in stream)), reading=reading)


def rows(stream: Sequence[Sample], leaders: dict[int, SamplingEvent], *, reading: bool = True) -> pl.DataFrame:
    recording = decoded(stream, reading=reading)
    table = tables.samples_table(recording.samples, recording.stacks, leaders)
    assert table.schema == TABLES["samples"]
    return table


def test_a_sample_stands_for_what_its_thread_did_since_the_last_one() -> None:
    """Events are numbered by thread and kind of core; each one's first sample stands for all since it was opened."""
    stream = [
        Sample(event=1, time_ns=10, enabled_ns=100, values=(1000, 500, 30, 10)),
        Sample(event=1, time_ns=40, enabled_ns=400, values=(4000, 800, 90, 50)),  # written before one that is earlier
        Sample(event=1, time_ns=30, enabled_ns=300, values=(3000, 700, 60, 40)),
        Sample(event=2, time_ns=20, enabled_ns=50, values=(77, 70)),
        Sample(event=3, time_ns=50, enabled_ns=60, values=(5,)),
    ]
    table = rows(stream, {1: BIG, 2: SMALL, 3: BARE})
    assert table.select("time_ns", "cpu_ns", "cycles", "instructions", "llc_misses").rows() == [
        (10, 100, 1000, 500, 20),
        (20, 50, 77, 70, None),
        (30, 200, 2000, 200, 0),
        (40, 100, 1000, 100, 20),
        (50, 60, 5, None, None),
    ]
    assert table["event"].unique().to_list() == ["cycles"]


def test_by_the_clock_a_sample_stands_for_its_period() -> None:
    table = rows([Sample(period=1_001_001)], {7: CPU_CLOCK_EVENT}, reading=False)
    assert table.select("event", "period", "cpu_ns", "cycles", "instructions", "llc_misses").row(0) == (
        "cpu-clock",
        1_001_001,
        1_001_001,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(("cpu_ns", "silent"), [(200_000_000, ["llc_misses"]), (1_000, [])])
def test_a_counter_that_never_moves_is_no_figure(cpu_ns: int, silent: list[str]) -> None:
    table = rows([Sample(event=1, enabled_ns=cpu_ns, values=(9, 5, 0, 0))], {1: BIG})
    told, found = tables.without_silent(table)
    assert found == silent
    assert told.select("cycles", "instructions", "llc_misses").row(0) == (9, 5, None if silent else 0)
    assert told.schema == TABLES["samples"]


def test_domains_addresses_and_callers() -> None:
    stream = [
        Sample(time_ns=1, address=2**64 - 8192, mode=KERNEL, chain=(CONTEXT_USER, 0x30, 0x20, 0x10)),
        Sample(time_ns=2, address=0x30, chain=(CONTEXT_USER, 0x30, 0x20, 0x10)),
        Sample(time_ns=3, address=0x30, chain=(CONTEXT_USER, 0x30)),
        Sample(time_ns=4, mode=0),
    ]
    recording = decoded(stream, reading=False)
    table = tables.samples_table(recording.samples, recording.stacks, {7: CPU_CLOCK_EVENT})
    stacks = tables.stacks_table(recording.stacks)
    assert stacks.schema == TABLES["stacks"]
    assert table["domain"].to_list() == ["kernel", "user", "user", "unknown"]
    assert table["address"][0] == 2**64 - 8192
    by_number = {row["stack"]: row for row in stacks.iter_rows(named=True)}

    def called_from(stack: int | None) -> list[int]:
        found = []
        while stack is not None:
            found.append(by_number[stack]["address"])
            stack = by_number[stack]["parent"]
        return found

    assert [called_from(stack) for stack in table["stack"]] == [[0x30, 0x20, 0x10], [0x20, 0x10], [], []]
    assert stacks.height == 3, "common callers are kept once"
    assert all(row["parent"] is None or row["parent"] < row["stack"] for row in by_number.values())


def test_nothing_sampled_is_no_rows() -> None:
    recording = decoded([])
    assert tables.samples_table(recording.samples, recording.stacks, {}).is_empty()
    assert tables.switches_table(recording.switches).is_empty()
    assert tables.stacks_table(recording.stacks).is_empty()
    assert tables.mappings_table([]).schema == TABLES["mappings"]


def test_a_switch_out_and_the_next_switch_in_are_one_row() -> None:
    stream = [
        switch(out=False, tid=1, time_ns=5, cpu=0),
        switch(out=True, tid=1, time_ns=10, cpu=0),
        switch(out=True, tid=2, time_ns=11, cpu=1, preempted=True),
        switch(out=False, tid=2, time_ns=12, cpu=1),
        switch(out=False, tid=1, time_ns=20, cpu=3),
        switch(out=True, tid=2, time_ns=30, cpu=1),
    ]
    table = tables.switches_table(decoded(stream).switches)
    assert table.select("tid", "out_ns", "in_ns", "out_cpu", "in_cpu", "preempted").rows() == [
        (1, None, 5, None, 0, None),
        (1, 10, 20, 0, 3, False),
        (2, 11, 12, 1, 1, True),
        (2, 30, None, 1, None, False),
    ]


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=40))
def test_no_switch_is_told_twice_or_lost(course: list[tuple[int, bool]]) -> None:
    """Whatever was lost in between: each switch-out is one row, each coming back the end of one."""
    stream = [switch(out=out, tid=tid, time_ns=number) for number, (tid, out) in enumerate(course)]
    table = tables.switches_table(decoded(stream).switches)
    left = [number for number, (_, out) in enumerate(course) if out]
    back = [number for number, (_, out) in enumerate(course) if not out]
    assert sorted(table["out_ns"].drop_nulls().to_list()) == left
    assert sorted(table["in_ns"].drop_nulls().to_list()) == back
    both = table.drop_nulls(["out_ns", "in_ns"])
    assert (both["out_ns"] < both["in_ns"]).all()
    for tid, out_ns, in_ns in both.select("tid", "out_ns", "in_ns").iter_rows():
        between = [number for number in range(out_ns + 1, in_ns) if course[number][0] == tid]
        assert between == []


def test_mappings_come_by_time() -> None:
    late = Mapping(20, 5, 2**63, 4096, 0, "//anon", 5)
    early = Mapping(10, 5, 0x1000, 8192, 4096, "/lib/x.so", 5)
    table = tables.mappings_table([late, early])
    assert table.drop("pass").rows() == [(10, 5, 0x1000, 8192, 4096, "/lib/x.so"), (20, 5, 2**63, 4096, 0, "//anon")]


def test_a_file_whose_name_is_no_text_is_a_row_like_others() -> None:
    odd = Mapping(1, 100, 0x1000, 0x1000, 0, os.fsdecode(b"/lib/\xff.so"), 5)
    assert tables.mappings_table([odd])["file"].to_list() == ["/lib/\ufffd.so"]
