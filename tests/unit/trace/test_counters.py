from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from hwprof.run.manifest import EventInfo, PassRecord
from hwprof.trace.counters import ADJACENT_NS, RateOfChange, Rates
from hwprof.trace.encoder import EventSequence
from tests.support import trace_decoding as decoding

PASS = PassRecord(
    name="measure", events=[EventInfo("task-clock", "", "ns", "software"), EventInfo("cycles", "", "1", "hardware")]
)


def values(file: io.BytesIO) -> list[tuple[int, Any]]:
    """Time and value, which is compared as closely as arithmetic allows."""
    return [(event.time_ns, pytest.approx(event.value)) for event in decoding.events(file)]


def leaves(*spans: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"span": number, "begin_ns": begin, "end_ns": end} for number, (begin, end) in enumerate(spans)]
    )


def counts(*rows: tuple[int, str, int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, ["span", "event", "value", "enabled_ns", "running_ns"], orient="row")


@pytest.fixture
def tracks() -> tuple[dict[str, io.BytesIO], Callable[[str, str], EventSequence]]:
    files: dict[str, io.BytesIO] = {}

    def add(name: str, unit: str) -> EventSequence:
        files[f"{name} [{unit}]"], sequence = decoding.sequence()
        return sequence

    return files, add


def test_watts_hold_from_one_reading_to_the_next_and_end() -> None:
    file, sequence = decoding.sequence()
    rate_of_change = RateOfChange(sequence)
    rate_of_change.add(np.array([0, 1_000_000, 3_000_000, 3_000_000]), np.array([0.0, 0.01, 0.01, 0.02]))
    rate_of_change.add(np.array([4_000_000]), np.array([0.05]))
    rate_of_change.finish()
    assert values(file) == [(0, 10.0), (1_000_000, 5.0), (3_000_000, 30.0), (4_000_000, 0.0)]


def test_bytes_are_gigabytes_a_second() -> None:
    file, sequence = decoding.sequence()
    rate_of_change = RateOfChange(sequence, 1e-9)
    rate_of_change.add(np.array([0, 1_000_000, 3_000_000]), np.array([0.0, 4e6, 4e6]))
    rate_of_change.finish()
    assert values(file) == [(0, 4.0), (1_000_000, 0.0), (3_000_000, 0.0)]


def test_without_readings_nothing_grows() -> None:
    file, sequence = decoding.sequence()
    rate_of_change = RateOfChange(sequence)
    rate_of_change.add(np.array([], dtype=np.int64), np.array([]))
    rate_of_change.finish()
    assert values(file) == []


def test_rates_are_of_all_threads_and_zero_where_no_leaf_follows(tracks: Any) -> None:
    files, add = tracks
    far = 200 + ADJACENT_NS + 1
    rates = Rates(PASS, add)
    rates.add(
        leaves((100, 150), (150, 200), (far, far + 100)),
        counts((0, "cycles", 40, 50, 50), (0, "cycles", 60, 50, 50), (1, "cycles", 50, 50, 50), (2, "cycles", 7, 9, 9)),
    )
    rates.finish()
    assert list(files) == ["cycles/s [cycles/s]"]
    assert values(files["cycles/s [cycles/s]"]) == [(100, 2e9), (150, 1e9), (200, 0.0), (far, 7e7), (far + 100, 0.0)]


def test_windows_make_no_difference(tracks: Any) -> None:
    files, add = tracks
    rates = Rates(PASS, add)
    far = 150 + ADJACENT_NS + 1
    for number, span in enumerate([(100, 150), (151, 152), (far + 2, far + 4)]):
        only = leaves(*([span] * (number + 1)))[number:]
        rates.add(only, counts((number, "cycles", 50, 1, 1)))
    rates.finish()
    assert [time_ns for time_ns, _ in values(files["cycles/s [cycles/s]"])] == [100, 151, 152, far + 2, far + 4]


@pytest.mark.parametrize(
    ("event", "track"),
    [
        ("fp_ret_sse_avx_ops.all", "fp_ret_sse_avx_ops.all/s"),
        ("PAPI_TOT_CYC", "PAPI_TOT_CYC/s"),
        ("cpu_core/cycles/", "cpu_core/cycles/ per s"),
        ("cpu/event=0xc7,umask=0x80/", "cpu/event=0xc7,umask=0x80/ per s"),
    ],
)
def test_every_event_s_rate_has_its_name(event: str, track: str, tracks: Any) -> None:
    """Also of what stands for several operations or bytes: a rate of counts is not one of these."""
    files, add = tracks
    record = PassRecord(name="measure", events=[EventInfo(event, "", "FLOP", "hardware")])
    Rates(record, add).add(leaves((0, 100)), counts((0, event, 50, 9, 9)))
    assert list(files) == [f"{track} [{track}]"]


def test_time_on_a_processor_is_a_number_of_processors(tracks: Any) -> None:
    files, add = tracks
    rates = Rates(PASS, add)
    rates.add(leaves((0, 100)), counts((0, "task-clock", 90, 1, 1), (0, "task-clock", 60, 1, 1)))
    assert values(files["CPUs busy [CPUs]"]) == [(0, 1.5)]


def test_no_thread_is_busy_for_longer_than_the_time(tracks: Any) -> None:
    """Threads are read one after the other; one that was preempted meanwhile ran on."""
    files, add = tracks
    rates = Rates(PASS, add)
    rates.add(leaves((0, 100)), counts((0, "task-clock", 150, 1, 1), (0, "task-clock", 60, 1, 1)))
    assert values(files["CPUs busy [CPUs]"]) == [(0, 210 / 150)]


def test_multiplexed_counts_are_scaled_and_uncounted_ones_have_no_rate(tracks: Any) -> None:
    files, add = tracks
    rates = Rates(PASS, add)
    rates.add(
        leaves((0, 100), (100, 100)), counts((0, "cycles", 50, 100, 50), (1, "cycles", 5, 9, 9), (0, "x", 0, 9, 0))
    )
    assert list(files) == ["cycles/s [cycles/s]"]
    assert values(files["cycles/s [cycles/s]"]) == [(0, 1e9)]
