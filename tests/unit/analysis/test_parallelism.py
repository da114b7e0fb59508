"""What a layer loses most of its threads' time to, and whose counters hold more waiting than work."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.owners import WHOLE
from hwprof.analysis.parallelism import FEW_FOR_BALANCE, contaminated_layers, largest_loss
from hwprof.analysis.states import ABSENT, BARRIER, BLOCKED, BUSY, PREEMPTED, UNSAMPLED, WAITING

States = dict[tuple[int, str], float]


def found(
    states: States,
    elapsed_ns: float = 100,
    threads: int = 2,
    team: frozenset[int] = frozenset(range(1, 5)),
    samples: int = FEW_FOR_BALANCE,
) -> str | None:
    rows = [(tid, state, ns, samples) for (tid, state), ns in states.items()]
    return largest_loss(rows, elapsed_ns, team, threads)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({(1, BUSY): 100, (2, BUSY): 95, (2, WAITING): 5}, None),
        ({(1, BUSY): 100, (2, WAITING): 100}, "single-threaded: 100% on one of 2"),
        ({(1, BUSY): 97, (1, WAITING): 3, (2, BUSY): 3, (2, BARRIER): 97}, "single-threaded: 97% on one of 2"),
        ({(1, BUSY): 2, (1, PREEMPTED): 98, (2, PREEMPTED): 10, (2, WAITING): 90}, "preempted: 54%"),
        ({(1, BUSY): 100, (2, BUSY): 50, (2, WAITING): 50}, "imbalance: 25%"),
        ({(1, BUSY): 50, (1, WAITING): 50, (2, BUSY): 50, (2, BARRIER): 50}, "barrier latency: 50%"),
        ({(1, BUSY): 40, (1, PREEMPTED): 60, (2, BUSY): 40, (2, WAITING): 60}, "preempted: 30%"),
        ({(1, BUSY): 40, (1, "I/O"): 60, (2, BUSY): 90, (2, WAITING): 10}, "I/O: 30%"),
        ({(1, BUSY): 50, (1, BLOCKED): 50, (2, BUSY): 100}, "blocked: 25%"),
        ({(1, BUSY): 80, (2, UNSAMPLED): 100, (2, BUSY): 60}, None),
        ({(1, BUSY): 100, (2, BUSY): 80, (2, "lock"): 20}, "lock: 10%"),
        ({(1, BUSY): 100, (2, BUSY): 80.1, (2, "lock"): 19.9}, None),
        ({}, None),
    ],
)
def test_the_largest_loss_is_told(states: States, expected: str | None) -> None:
    assert found(states) == expected


@pytest.mark.parametrize(
    ("states", "of_many", "of_few"),
    [
        ({(1, BUSY): 100, (2, WAITING): 100}, "single-threaded: 100% on one of 2", None),
        ({(1, BUSY): 60, (1, WAITING): 40, (2, BUSY): 20, (2, WAITING): 80}, "barrier latency: 40%", None),
        ({(1, BUSY): 2, (1, WAITING): 98, (2, WAITING): 100}, "barrier latency: 98%", "barrier latency: 98%"),
        ({(1, BUSY): 2, (1, WAITING): 98, (2, PREEMPTED): 100}, "preempted: 50%", "preempted: 50%"),
        ({(1, BUSY): 86, (1, WAITING): 14, (2, BUSY): 14, (2, PREEMPTED): 86}, "preempted: 43%", "preempted: 43%"),
    ],
)
def test_few_busy_samples_tell_of_no_imbalance(states: States, of_many: str, of_few: str | None) -> None:
    """And of what it might be the larger part of; what is larger anyway is told."""
    assert (found(states), found(states, samples=FEW_FOR_BALANCE // 3)) == (of_many, of_few)


def test_one_thread_alone_is_not_called_single_threaded() -> None:
    assert found({(1, BUSY): 100}, threads=1) is None
    assert found({(1, BUSY): 50, (1, PREEMPTED): 50}, threads=1) == "preempted: 50%"


def test_threads_that_never_took_part_are_the_loss_and_no_imbalance_of_the_others() -> None:
    """Four were asked for, two ever worked."""
    alike: States = {(1, BUSY): 97, (1, WAITING): 3, (2, BUSY): 97, (2, WAITING): 3}
    assert found(alike, threads=4) == "unused threads: 50%"
    late: States = {(3, ABSENT): 100, (4, ABSENT): 100}
    assert found(alike | late, threads=4) == "unused threads: 50%"
    waiting: States = {
        (1, BUSY): 20,
        (1, WAITING): 80,
        (2, BUSY): 20,
        (2, WAITING): 80,
        (3, BUSY): 20,
        (3, BARRIER): 80,
    }
    assert found(waiting, threads=4) == "barrier latency: 60%", "all had as much to do"
    assert found({(1, BUSY): 100}, threads=4) == "single-threaded: 100% on one of 4"


def test_a_worker_that_never_had_to_wait_is_one_of_the_threads() -> None:
    assert found({(1, BUSY): 100, (2, BUSY): 98}, team=frozenset({1})) is None


def test_a_pool_of_the_models_own_is_judged_by_its_threads() -> None:
    """One was asked for, and it waits for two that do the work: they lose nothing."""
    states: States = {(1, "lock"): 98, (1, BUSY): 2, (2, BUSY): 100, (3, BUSY): 90, (3, BLOCKED): 10}
    assert found(states, threads=1, team=frozenset({1})) is None
    assert found(states | {(3, BUSY): 60, (3, BLOCKED): 40}, threads=1, team=frozenset({1})) == "blocked: 20%"


def test_a_pool_of_as_many_threads_as_were_asked_for_is_judged_by_its_own() -> None:
    """That the calling thread waits for it is no loss of the two that do the work."""
    states: States = {(1, "lock"): 100, (2, BUSY): 60, (2, PREEMPTED): 40, (3, BUSY): 70, (3, PREEMPTED): 30}
    assert found(states, threads=2, team=frozenset({1})) == "preempted: 35%"


def test_no_more_is_lost_than_there_is() -> None:
    """A team of four, of which two were asked for."""
    states: States = {(1, BUSY): 60, (2, BUSY): 4, **{(tid, WAITING): 100 - 60 * (tid == 1) for tid in range(1, 5)}}
    assert found(states) == "single-threaded: 94% on one of 2"


@given(
    st.dictionaries(
        st.tuples(st.integers(1, 4), st.sampled_from([BUSY, WAITING, BARRIER, PREEMPTED, "lock"])), st.floats(0, 100)
    ),
    st.permutations(range(1, 5)),
)
def test_which_thread_is_which_does_not_matter(states: States, order: list[int]) -> None:
    renamed = {(order[tid - 1], state): ns for (tid, state), ns in states.items()}
    assert found(states, threads=4) == found(renamed, threads=4)


def test_layers_whose_samples_mostly_wait_are_mixed() -> None:
    def rows(layer: str, busy: int, waiting: int) -> pl.DataFrame:
        return pl.DataFrame({"layer": layer, "state": [BUSY] * busy + [WAITING] * waiting}).with_columns(
            ns=pl.lit(10), sampled=True
        )

    moments = pl.concat([rows("a", 90, 10), rows("b", 70, 30), rows("few", 0, 9), rows("ten", 8, 2), rows("c", 80, 20)])
    assert contaminated_layers(moments, few=10) == ["b", "c", "ten", WHOLE]
    assert contaminated_layers(rows("a", 90, 10), few=10) == []
    assert contaminated_layers(moments.with_columns(sampled=False), few=1) == [], "off a processor nothing is counted"
