"""perf's records decoded by whole arrays: the same as one by one, whatever they are and wherever the stream is cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.sampler.call_chains import NO_CALLERS, Stacks
from collectors.sampler.record_decoder import Decoder
from collectors.sampler.record_file import Recording, decode_all
from collectors.sampler.record_offsets import record_offsets, walk
from collectors.sampler.records import Samples, Switches
from hwprof.hardware import perf_sampling
from tests.support.sampler_records import (
    CONTEXT_USER,
    KERNEL,
    USER,
    Other,
    Plain,
    Sample,
    birth,
    end,
    lost,
    lost_samples,
    mapping,
    read_plainly,
    renaming,
    switch,
    throttle,
)

LARGEST_RECORD = 1 << 16

small = st.integers(0, 2**31 - 1)
moments = st.integers(0, 2**62)
addresses = st.integers(1, 2**64 - 4096)
chains = st.one_of(
    st.just(()),
    st.lists(st.sampled_from([0x40_1000, 0x40_2000, 0x7F00_0000_0000, 2**63]), max_size=6).map(
        lambda found: (CONTEXT_USER, *found)
    ),
    st.lists(addresses, max_size=40).map(lambda found: (CONTEXT_USER, *found)),
)
samples = st.builds(
    Sample,
    event=st.integers(1, 5),
    address=st.integers(0, 2**64 - 1),
    pid=small,
    tid=small,
    time_ns=moments,
    cpu=st.integers(0, 511),
    period=st.integers(0, 2**50),
    mode=st.sampled_from([0, KERNEL, USER, 3, 4, 5]),
    enabled_ns=moments,
    running_ns=moments,
    values=st.lists(st.integers(0, 2**62), min_size=1, max_size=5).map(tuple),
    chain=chains,
)
switches = st.builds(
    lambda out, preempted, **more: switch(out=out, preempted=out and preempted, **more),
    out=st.booleans(),
    preempted=st.booleans(),
    tid=small,
    time_ns=moments,
    cpu=st.integers(0, 511),
)
others = st.one_of(
    switches,
    st.integers(1, 1000).map(lost),
    st.integers(1, 1000).map(lost_samples),
    st.just(throttle()),
    st.just(birth(100, 102)),
    st.just(mapping(0x1000, 0x2000, 0, "/lib/libx.so")),
    st.integers(20, 200).map(lambda kind: Other(kind, b"12345678")),  # kinds that later kernels may have
)
streams = st.lists(st.one_of(samples, others), max_size=30)


def told(columns: Samples | Switches, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(getattr(columns, name).tolist() for name in names), strict=True))


def callers(stacks: Stacks, chain: int) -> tuple[int, ...]:
    """Innermost first."""
    found = []
    node = stacks.of_chain[chain] if chain != NO_CALLERS else -1
    while node >= 0:
        found.append(stacks.address[node])
        node = stacks.parent[node]
    return tuple(found)


def check(recording: Recording, plain: Plain, *, reading: bool) -> None:
    names = ("event", "address", "pid", "tid", "time_ns", "cpu", "period", "mode", "enabled_ns", "running_ns")
    assert told(recording.samples, *names) == [
        tuple(getattr(sample, name) for name in names) for sample in plain.samples
    ]
    if reading:
        width = max((len(sample.values) for sample in plain.samples), default=0)
        padded = [[*sample.values, *[0] * (width - len(sample.values))] for sample in plain.samples]
        assert recording.samples.values.tolist() == padded
    assert [callers(recording.stacks, chain) for chain in recording.samples.chain.tolist()] == [
        sample.callers() for sample in plain.samples
    ]
    assert told(recording.switches, "pid", "tid", "time_ns", "cpu", "out", "preempted") == plain.switches
    assert (recording.lost, recording.throttled) == (plain.lost, plain.throttled)


def as_bytes(stream: Sequence[Sample | Other], *, reading: bool) -> bytes:
    return b"".join(one.record(reading=reading) for one in stream)


@given(streams, st.booleans())
def test_arrays_tell_what_one_record_after_the_other_tells(stream: list[Sample | Other], reading: bool) -> None:
    data = as_bytes(stream, reading=reading)
    recording = decode_all(memoryview(data), reading=reading)
    assert recording.torn_bytes == 0
    plain = read_plainly(data, reading=reading)
    assert len(plain.samples) == sum(isinstance(one, Sample) for one in stream)
    check(recording, plain, reading=reading)


@given(streams, st.integers(0, 100), st.one_of(st.none(), st.tuples(st.integers(0, 10**6), st.integers(0, 255))))
def test_walking_at_many_places_at_once_finds_the_same_records(
    stream: list[Sample | Other], cut: int, damage: tuple[int, int] | None
) -> None:
    """Whatever a byte is changed to: what looks like a record's beginning and is none must not be taken for one."""
    data = bytearray(as_bytes(stream, reading=True) * 3)
    if damage and data:
        data[damage[0] % len(data)] = damage[1]
    data = data[: max(0, len(data) - cut)]
    slow, slow_used = walk(memoryview(data))
    fast, used = record_offsets(memoryview(data), chunk_words=16)
    assert (fast.tolist(), used) == (slow.tolist(), slow_used)


def test_a_header_in_the_middle_of_a_sample_fools_nobody() -> None:
    """A counter's value that looks exactly like a sample's header."""
    header = int.from_bytes(Sample().record(reading=True)[:8], "little")
    stream = [Sample(time_ns=number, values=(header,) * 5) for number in range(50)]
    data = as_bytes(stream, reading=True)
    fast, used = record_offsets(data, chunk_words=16)
    assert (fast.tolist(), used) == (walk(memoryview(data))[0].tolist(), len(data))


@settings(max_examples=30)
@given(st.lists(samples, min_size=1, max_size=5), st.integers(1, 400))
def test_blocks_may_end_in_the_middle_of_records(some: list[Sample], times: int) -> None:
    data = as_bytes(some * times, reading=True)
    recording = decode_all(memoryview(data), reading=True, block_bytes=LARGEST_RECORD)
    check(recording, read_plainly(data, reading=True), reading=True)
    assert recording.torn_bytes == 0


@given(streams, st.integers(0, 4000))
def test_a_stream_that_is_cut_off_loses_its_last_record_only(stream: list[Sample | Other], cut: int) -> None:
    data = as_bytes(stream, reading=True)
    data = data[: max(0, len(data) - cut)]
    plain = read_plainly(data, reading=True)
    recording = decode_all(memoryview(data), reading=True)
    check(recording, plain, reading=True)
    assert recording.torn_bytes == len(data) - plain.used


@pytest.mark.parametrize("size", [0, 12])
def test_after_a_record_without_a_size_nothing_is_guessed(size: int) -> None:
    good = Sample(values=(1,)).record(reading=True)
    bad = good[:6] + size.to_bytes(2, "little") + good[8:]
    recording = decode_all(memoryview(good + bad + good), reading=True)
    assert len(recording.samples.time_ns) == 1
    assert recording.torn_bytes == len(bad) + len(good)


@pytest.mark.parametrize(("word", "number"), [(7, 2**40), (11, 2**40), (11, 4)])
def test_a_sample_whose_parts_reach_beyond_it_is_left_out(word: int, number: int) -> None:
    """Word 7 says how many values there are, word 11 how many callers."""
    good = Sample(values=(5,), chain=(CONTEXT_USER, 1, 2)).record(reading=True)
    words = np.frombuffer(good, dtype=np.uint64).copy()
    assert words[11] == 3
    words[word] = number
    recording = decode_all(memoryview(good + words.tobytes() + good), reading=True)
    assert recording.samples.values.tolist() == [[5], [5]]
    assert recording.torn_bytes == len(good)


def test_created_threads_names_and_mappings_are_told() -> None:
    stream = [
        mapping(0x7F00_0000_1000, 0x2000, 0x3000, "/lib/libx.so"),
        mapping(2**63 + 4096, 8, 0, "seven77"),
        birth(100, 105, time_ns=77),
        end(100, 105, time_ns=99),
        renaming(100, 105, "fifteen letters"),
        renaming(100, 106, "pool-1"),
    ]
    batch, _ = Decoder(reading=False).decode(as_bytes(stream, reading=False))
    first, second = batch.mappings
    assert (first.address, first.size_bytes, first.offset_bytes) == (0x7F00_0000_1000, 0x2000, 0x3000)
    assert (first.file, first.pid, first.time_ns, first.protection) == ("/lib/libx.so", 100, 1_000_000, 5)
    assert (second.file, second.address) == ("seven77", 2**63 + 4096)
    assert [(born.pid, born.tid, born.time_ns) for born in batch.created_threads] == [(100, 105, 77)]
    assert [(ended.pid, ended.tid, ended.time_ns) for ended in batch.ended_threads] == [(100, 105, 99)]
    assert [(one.pid, one.tid, one.name) for one in batch.renamings] == [
        (100, 105, "fifteen letters"), (100, 106, "pool-1")
    ]  # fmt: skip


def test_the_kinds_of_record_are_the_kernels() -> None:
    """linux/perf_event.h's numbers, once more."""
    assert {name: value for name, value in vars(perf_sampling).items() if name.startswith("RECORD_")} == {
        "RECORD_LOST": 2,
        "RECORD_COMM": 3,
        "RECORD_EXIT": 4,
        "RECORD_THROTTLE": 5,
        "RECORD_FORK": 7,
        "RECORD_SAMPLE": 9,
        "RECORD_MMAP2": 10,
        "RECORD_LOST_SAMPLES": 13,
        "RECORD_SWITCH": 14,
    }
