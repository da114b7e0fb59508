"""Whose memory is whose: by time, against a naive walk through all events."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.allocations import MODULES, SCHEMA, layer_allocations
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.run.schema import TABLES
from hwprof.unavailable import Unavailable
from tests.support.small_tables import MAIN, layers, spans

Event = tuple[int, int, int]
"""Time, address, bytes."""

LAYERS = layers([("", "Net", False), ("block", "Block", False), ("block.a", "Conv2d", True), ("b", "ReLU", True)])
CALLS = [
    (0, None, 0, "stage", "inference", 0, 100),
    (1, 0, 0, "layer", "", 10, 90),
    (2, 1, 0, "layer", "block", 20, 60),
    (3, 2, 0, "layer", "block.a", 30, 40),
    (4, 1, 0, "layer", "b", 70, 80),
    (5, None, 1, "stage", "inference", 100, 200),
    (6, 5, 1, "layer", "", 110, 190),
    (7, 6, 1, "layer", "block", 120, 160),
    (8, 7, 1, "layer", "block.a", 130, 135),
    (9, 7, 1, "layer", "block.a", 140, 150),
]
OWNERS = {"": "(root) (own)", "block": "block (own)", "block.a": "block.a", "b": "b"}


def events(rows: list[Event]) -> pl.DataFrame:
    names = ["time_ns", "address", "bytes"]
    found = [dict(zip(names, row, strict=True)) | {"pass": "trace", "pid": MAIN, "tid": MAIN} for row in rows]
    return pl.DataFrame(found, schema=TABLES["allocations"])


def told(rows: list[Event], iterations: tuple[int, ...] = (0,)) -> tuple[dict[str, Any], dict[str, Any]]:
    found = layer_allocations(events(rows), spans(CALLS), LAYERS, iterations)
    assert not isinstance(found, Unavailable)
    owners, modules = found
    assert owners.schema == SCHEMA and modules.schema == MODULES
    return ({row["layer"]: row for row in owners.to_dicts()}, {row["module"]: row for row in modules.to_dicts()})


def test_a_layer_has_what_it_allocates_frees_and_keeps() -> None:
    """``a`` gets 100 and 40 and frees the 40; what it keeps, ``b`` frees."""
    owners, modules = told([(31, 1, 100), (33, 2, 40), (35, 2, -40), (72, 3, 7), (75, 1, -100), (95, 3, -7)])
    a, b = owners["block.a"], owners["b"]
    assert (a["allocations"], a["allocated_bytes"], a["freed_bytes"], a["kept_bytes"]) == (2, 140, 40, 100)
    assert (a["largest_bytes"], a["peak_bytes"]) == (100, 140)
    assert (b["allocated_bytes"], b["freed_bytes"], b["kept_bytes"], b["peak_bytes"]) == (7, 100, 7, 7)
    assert modules["block"]["kept_bytes"] == 100 and modules[""]["kept_bytes"] == 7
    assert modules[""]["peak_bytes"] == 140
    assert owners[UNATTRIBUTED]["freed_bytes"] == 7
    assert (owners[WHOLE]["allocated_bytes"], owners[WHOLE]["kept_bytes"]) == (147, 0)


def test_own_code_keeps_what_outlives_its_module() -> None:
    owners, _ = told([(25, 1, 10), (50, 2, 20), (55, 1, -10), (65, 3, 5)])
    block = owners["block (own)"]
    assert (block["allocated_bytes"], block["freed_bytes"], block["kept_bytes"]) == (30, 10, 20)
    assert block["peak_bytes"] is None
    assert owners["(root) (own)"]["kept_bytes"] == 5


def test_sums_are_means_of_iterations_and_peaks_are_of_any_call() -> None:
    owners, _ = told([(31, 1, 100), (131, 2, 30), (132, 2, -30), (141, 3, 50)], (0, 1))
    a = owners["block.a"]
    assert (a["allocated_bytes"], a["kept_bytes"], a["peak_bytes"], a["allocations"]) == (90, 75, 100, 1.5)


def of_watched(number: int, rows: list[Event], watched: int = 0) -> dict[str, Any]:
    """What the layer ``b`` does at 100 i + 50 in iterations from ``watched`` on; events of before were not seen."""
    calls = [
        call
        for i in range(number)
        for call in (
            (2 * i, None, i, "stage", "inference", 100 * i, 100 * i + 90),
            (2 * i + 1, 2 * i, i, "layer", "b", 100 * i + 40, 100 * i + 60),
        )
    ]
    last: dict[int, int] = {}
    seen = []
    for time_ns, address, size in sorted(rows):
        if time_ns >= 100 * watched and (size > 0 or last.get(address, 0) > 0):
            seen.append((time_ns, address, size))
            last[address] = size
    found = layer_allocations(events(seen), spans(calls), LAYERS, tuple(range(watched, number)))
    assert not isinstance(found, Unavailable)
    owners = {row["layer"]: row for row in found[0].to_dicts()}
    parts = [row["freed_bytes"] for name, row in owners.items() if name != WHOLE]
    assert sum(parts) == pytest.approx(owners[WHOLE]["freed_bytes"])
    return owners["b"]


def kept(iterations: int, number: int, size: int = 100) -> list[Event]:
    """Each call frees what one had allocated so many iterations before, then allocates as much."""
    frees = [(100 * (i + iterations) + 50, 1000 * iterations + i, -size) for i in range(number - iterations)]
    return [*frees, *[(100 * i + 51, 1000 * iterations + i, size) for i in range(number)]]


@pytest.mark.parametrize("watched", [0, 2, 3])
@pytest.mark.parametrize("lived", [(1,), (3,), (1, 2), (1, 3, 3)])
def test_what_is_freed_is_of_iterations_that_could_see_it(watched: int, lived: tuple[int, ...]) -> None:
    """What was allocated before the pass was watched is freed unseen, in the first iterations."""
    number = watched + 5
    rows = [
        (time_ns, 100_000 * which + address, size)
        for which, k in enumerate(lived)
        for time_ns, address, size in kept(k, number)
    ]
    found = of_watched(number, rows, watched)
    assert found["allocated_bytes"] == found["kept_bytes"] == 100 * len(lived)
    assert found["freed_bytes"] == pytest.approx(100 * len(lived))
    assert found["peak_bytes"] == 0, "it frees as much before"


def test_what_one_iteration_only_sees_is_not_taken_for_what_each_does() -> None:
    """Blocks that live nearly as long as the pass, and a collection of what five iterations left."""
    assert of_watched(5, kept(4, 5))["freed_bytes"] == 100 / 5
    left = [(100 * i + 50, i, 100) for i in range(5)]
    collected = [*left, *[(456, i, -100) for i in range(5)]]
    assert of_watched(5, collected)["freed_bytes"] == 100
    assert of_watched(6, collected)["freed_bytes"] == pytest.approx(500 / 6)


def test_a_layer_that_frees_nothing_old_has_the_peak_of_all_its_calls() -> None:
    """The first call allocates more than later ones, and what another layer keeps has nothing to do with it."""
    passing = [(100 * i + at, 7, sign * (900 if i == 0 else 10)) for i in range(5) for at, sign in ((52, 1), (54, -1))]
    beside = [(time_ns + 25, address, size) for time_ns, address, size in kept(2, 5)]
    assert of_watched(5, [*passing, *beside])["peak_bytes"] == 900


def test_layers_of_several_threads_at_a_time_are_not_told_apart() -> None:
    both = [(0, None, 0, "stage", "inference", 0, 100), (1, 0, 0, "layer", "block.a", 0, 60)]
    rows = [*both, (2, 0, 0, "layer", "b", 30, 90)]
    assert isinstance(layer_allocations(events([]), spans(rows), LAYERS, (0,)), Unavailable)


def test_without_events_all_is_0() -> None:
    owners, modules = told([])
    assert str(owners[WHOLE]["freed_bytes"]) == str(owners["b"]["freed_bytes"]) == "0.0"
    assert owners[WHOLE]["allocated_bytes"] == owners[WHOLE]["largest_bytes"] == 0
    assert modules["block"]["peak_bytes"] == 0


@given(st.lists(st.tuples(st.integers(0, 205), st.integers(1, 4), st.integers(1, 99)), max_size=40))
def test_sums_are_those_of_a_walk_through_all_events(asked: list[tuple[int, int, int]]) -> None:
    """An address that is in use is freed, else it is allocated, at each of the times."""
    rows: list[Event] = []
    used: dict[int, int] = {}
    for time_ns, address, size in sorted(asked):
        if address in used:
            rows.append((time_ns, address, -used.pop(address)))
        else:
            used[address] = size
            rows.append((time_ns, address, size))
    owners, modules = told(rows, (0, 1))
    for path, owner in OWNERS.items():
        calls = [(begin, end) for _, _, _, kind, name, begin, end in CALLS if kind == "layer" and name == path]
        kept = peak = 0
        for begin, end in calls:
            within = [row for row in rows if begin <= row[0] < end]
            held: dict[int, int] = {}
            above = most = 0
            for _, address, size in within:
                above += size
                most = max(most, above)
                if size > 0:
                    held[address] = size
                else:
                    held.pop(address, None)
            kept, peak = kept + sum(held.values()), max(peak, most)
        found = modules[path] if path in modules else owners.get(owner)
        assert (kept / 2, peak) == ((found["kept_bytes"], found["peak_bytes"]) if found else (0, 0)), path
    parts = [row for name, row in owners.items() if name != WHOLE]
    for name in ("allocations", "allocated_bytes", "freed_bytes"):
        assert sum(row[name] for row in parts) == pytest.approx(owners[WHOLE][name])


def test_nothing_is_known_of_layers_with_threads_that_nobody_watches() -> None:
    rows = events([(25, 1, 10), (31, 2, 100), (72, 3, 7)])
    times = pl.DataFrame({"begin_ns": [34], "end_ns": [36]})
    found = layer_allocations(rows, spans(CALLS), LAYERS, (0,), times)
    assert not isinstance(found, Unavailable)
    owners, modules = ({row[0]: row[1:] for row in table.iter_rows()} for table in found)
    unknown = {name for name, values in owners.items() if set(values) == {None}}
    assert unknown == {"block.a", WHOLE} and owners["b"][1] == 7 and owners["block (own)"][1] == 10
    assert {name for name, values in modules.items() if set(values) == {None}} == {"", "block"}
