"""What is told of a pass's samples."""

from __future__ import annotations

import polars as pl
import pytest

from collectors.sampler.notes import busy_threads, cost_notes, represented
from tests.support.reported import texts


@pytest.mark.parametrize(
    ("cost_ns", "threads", "note"),
    [
        (None, 2, []),
        (5_000.0, 1, []),
        (
            14_000.0,
            1,
            [
                "sampling took about 1.4% of each thread's time:"
                " an interrupt takes 14 µs here. Try: --frequency 714: 1% at most"
            ],
        ),
        (
            14_000.0,
            2,
            [
                "sampling took about 1.4% of each thread's time, up to 2.8% where 2 threads wait for one another"
                " (OpenMP): an interrupt takes 14 µs here. Try: --frequency 357: 1% at most"
            ],
        ),
    ],
)
def test_threads_that_wait_for_one_another_pay_for_each_others_samples(
    cost_ns: float | None, threads: int, note: list[str]
) -> None:
    assert texts(cost_notes(cost_ns, 999, threads)) == note


def test_cheap_samples_add_up_over_many_threads() -> None:
    assert cost_notes(500.0, 999, 16) == []
    (note,) = cost_notes(500.0, 999, 64)
    assert "0.05% of each thread's time, up to 3.2% where 64 threads wait" in note.text


def test_threads_that_hardly_ever_worked_are_not_busy() -> None:
    samples = pl.DataFrame({"tid": [1] * 100 + [2] * 80 + [3] * 5, "cpu": [0, 1, 2, 3, 4] * 37})
    assert busy_threads(samples) == 2
    assert busy_threads(samples.clear()) == 0


def test_no_more_threads_work_at_a_time_than_processors() -> None:
    assert busy_threads(pl.DataFrame({"tid": [1, 2, 3, 4], "cpu": [0, 1, 0, 1]})) == 2


@pytest.mark.parametrize(
    ("process_ns", "of_new", "share"),
    [
        (None, False, 0.99),  # the process was gone
        (100_000, False, 0.99),  # of the process as much: what is missing is between the samples
        (130_000, True, 0.76),  # new threads worked before they were sampled
    ],
)
def test_what_new_threads_did_before_is_not_represented(process_ns: int | None, of_new: bool, share: float) -> None:
    found, whose = represented(100_000, 99_000, process_ns, 98_800)
    assert found == pytest.approx(share, abs=0.002)
    assert whose is of_new
    assert represented(0, 0, process_ns, 0)[0] in (None, 0.0)
