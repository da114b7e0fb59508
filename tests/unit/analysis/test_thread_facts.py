"""Where a team ran, by the processors of its samples and the machine's topology."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.thread_facts import WINDOW_NS, placement, processors
from hwprof.hardware.catalogue import microarchitectures
from hwprof.hardware.cores import machine_of
from hwprof.run.manifest import Machine

PAIRS = ((0, 4), (1, 5), (2, 6), (3, 7))
MACHINE = msgspec.structs.replace(
    machine_of(next(iter(microarchitectures()))), logical_processors=8, physical_cores=4, siblings=PAIRS
)
NODES = msgspec.structs.replace(MACHINE, nodes=((0, 1, 4, 5), (2, 3, 6, 7)))

Row = tuple[int, int, int]
"""Window, thread, processor."""


def samples(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(
        [(window * WINDOW_NS, tid, cpu, 1_000_000) for window, tid, cpu in rows],
        schema={"time_ns": pl.Int64, "tid": pl.Int32, "cpu": pl.Int32, "cpu_ns": pl.Int64},
        orient="row",
    )


def test_threads_on_the_two_sides_of_a_core_share_it() -> None:
    apart = [(0, 1, 0), (0, 2, 1)]
    together = [(1, 1, 0), (1, 2, 4)]
    assert placement(samples(apart), MACHINE)["shared_core"] == 0
    assert placement(samples(together), MACHINE)["shared_core"] == 1
    assert placement(samples(apart + together), MACHINE)["shared_core"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 1, 0), (0, 1, 4)],  # one thread that moved
        [(0, 1, 0), (0, 2, 0)],  # in turn on the same processor
        [(0, 1, 0), (1, 2, 4)],  # one after the other
    ],
)
def test_a_core_is_not_shared_by_who_is_not_there_at_the_same_time(rows: list[Row]) -> None:
    assert placement(samples(rows), MACHINE)["shared_core"] == 0


def test_a_machine_without_siblings_or_nodes_says_nothing_of_them() -> None:
    bare = msgspec.structs.replace(MACHINE, siblings=())
    assert placement(samples([(0, 1, 0), (0, 2, 4)]), bare) == {"cores": 4}
    assert placement(samples([]), NODES) == {"cores": 4}


def test_nodes_are_those_that_the_team_ran_on() -> None:
    found = placement(samples([(0, 1, 0), (0, 2, 1), (0, 3, 5), (0, 4, 2)]), NODES)
    assert found["nodes"] == [0.75, 0.25] and found["node_cores"] == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 9)), max_size=40))
def test_shares_are_shares_wherever_threads_run(rows: list[Row]) -> None:
    """On processors too that the topology does not name."""
    found = placement(samples(rows), NODES)
    assert 0 <= found.get("shared_core", 0) <= 1
    assert sum(found.get("nodes", [1.0])) == pytest.approx(1)


@pytest.mark.parametrize(
    ("limit", "allowed", "usable"), [(None, None, 8), (None, 3, 3), (2.0, None, 2), (1.5, None, 2), (0.1, 4, 1)]
)
def test_processors_are_those_that_affinity_and_control_group_leave(
    limit: float | None, allowed: int | None, usable: int
) -> None:
    machine: Machine = msgspec.structs.replace(MACHINE, cpu_limit=limit, allowed_processors=allowed)
    assert processors(machine) == usable
