"""A module that calls itself: what its outermost calls took, and nothing of that again for the calls within these."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from hwprof.analysis import instrumented
from hwprof.analysis.allocations import layer_allocations
from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.energy import meters_of
from hwprof.analysis.finding_times import finding_times
from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.inner_modules import within_modules
from hwprof.analysis.kernel_counts import KernelCounts
from hwprof.analysis.layer_energy import layer_energies
from hwprof.analysis.layers import layer_table, module_table
from hwprof.analysis.owners import ROOT, UNATTRIBUTED, WHOLE, own
from hwprof.analysis.primitives import analyse
from hwprof.analysis.recursion import outermost_calls, with_outermost
from hwprof.analysis.samples import attribute_samples
from hwprof.analysis.thread_states import Inference
from hwprof.analysis.uncore import by_owner
from hwprof.hardware.metrics import independent
from hwprof.run.schema import TABLES
from hwprof.unavailable import Unavailable
from tests.support.made_up_threads import AT_WORK
from tests.support.small_tables import MAIN, MS, WORKER, counts, layers, record, series, spans

LAYERS = layers([(ROOT, "Net", False), ("rec", "Rec", True), ("node", "Node", False), ("node.leaf", "Ten", True)])
CALLS = [
    (0, None, 0, "stage", "inference", 0, 100 * MS),
    (1, 0, 0, "layer", ROOT, 0, 100 * MS),
    (2, 1, 0, "layer", "rec", 0, 30 * MS),
    (3, 2, 0, "layer", "rec", 10 * MS, 30 * MS),
    (4, 3, 0, "layer", "rec", 20 * MS, 30 * MS),
    (5, 1, 0, "layer", "node", 40 * MS, 90 * MS),
    (6, 5, 0, "layer", "node.leaf", 41 * MS, 60 * MS),
    (7, 5, 0, "layer", "node", 60 * MS, 89 * MS),
    (8, 7, 0, "layer", "node.leaf", 62 * MS, 88 * MS),
]
"""``rec`` and ``node`` call themselves; ``node`` has 5 ms of its own: 2 of its outer call, 3 of the inner one."""

TIMES = {"rec": 30, "node.leaf": 45, own("node"): 5, own(ROOT): 20, WHOLE: 100, UNATTRIBUTED: 0}
CYCLES = [(0, span, MAIN, "cycles", (end - begin) // 1000) for span, _, _, _, _, begin, end in CALLS]
RECORD = record([(0, False, 0, True)], [["cycles"]])
TABLE = spans(CALLS)


@pytest.fixture
def attribution() -> Attribution:
    return attribute(TABLE, counts(CYCLES), LAYERS, RECORD)


def test_only_a_call_in_one_of_the_same_path_and_thread_is_not_outermost() -> None:
    marked = with_outermost(TABLE)
    assert marked.drop("outermost", "left_ns").equals(TABLE)
    assert marked.filter(~pl.col("outermost"))["span"].to_list() == [3, 4, 7]
    assert marked["left_ns"].to_list() == [ms * MS for ms in (100, 100, 30, 30, 30, 90, 60, 90, 88)]
    elsewhere = TABLE.with_columns(tid=pl.when(pl.col("span") == 3).then(WORKER).otherwise("tid").cast(pl.Int32))
    assert with_outermost(elsewhere).filter(~pl.col("outermost"))["span"].to_list() == [4, 7]


@pytest.mark.parametrize("rows", [[(0, 10), (10, 20)], [(0, 10), (10, 10)], [(0, 10), (5, 15)], [(3, 3), (3, 3)]])
def test_calls_that_lie_in_no_other_are_kept(rows: list[tuple[int, int]]) -> None:
    """One after the other, however short; and of coroutines, that only overlap."""
    table = spans([(number, None, 0, "layer", "rec", *row) for number, row in enumerate(rows)])
    assert outermost_calls(table).equals(table)


def test_equal_spans_are_one_call_in_the_other() -> None:
    table = spans([(number, None, 0, "layer", "rec", 5, 9) for number in range(3)])
    assert outermost_calls(table)["span"].to_list() == [0]


def test_times_and_counts_are_those_of_the_outermost_calls(attribution: Attribution) -> None:
    times = attribution.times
    assert dict(times.select("owner", pl.col("time_ns") // MS).iter_rows()) == TIMES
    assert dict(times.select("owner", "calls").iter_rows())["rec"] == 3
    cycles = dict(attribution.counts.select("owner", pl.col("value") // 1000).iter_rows())
    assert cycles == TIMES
    assert attribution.overlapping_calls == 0


def test_shares_are_of_the_whole_and_a_block_has_its_outermost_calls(attribution: Attribution) -> None:
    rows = layer_table(LAYERS, attribution, independent(), 2).rows
    assert dict(rows.select("owner", "share").iter_rows())["rec"] == pytest.approx(0.3)
    modules = module_table(TABLE, LAYERS, attribution, rows)
    node = modules.row(by_predicate=pl.col("owner") == "node", named=True)
    assert (node["time_median_ns"], node["calls_per_iteration"]) == (50 * MS, 2)
    assert node["share"] == pytest.approx(0.5)


def test_of_a_layer_that_two_blocks_call_each_has_the_time_of_its_outermost_calls() -> None:
    table = spans(
        [
            (1, None, 0, "layer", "a", 0, 30),
            (2, 1, 0, "layer", "rec", 0, 30),
            (3, 2, 0, "layer", "rec", 0, 30),
            (4, None, 0, "layer", "b", 30, 60),
            (5, 4, 0, "layer", "rec", 30, 60),
        ]
    )
    known = layers([("a", "Block", False), ("b", "Block", False), ("rec", "Rec", True)])
    parts = {(owner, row): part for owner, row, part in within_modules(table, known).iter_rows()}
    assert parts["a", "rec"] == parts["b", "rec"] == 0.5


def test_samples_and_the_time_that_they_share_out_are_the_same(attribution: Attribution) -> None:
    found = dict(Inference.of(TABLE, LAYERS, [0], AT_WORK).elapsed().select("layer", "elapsed_ns").iter_rows())
    times = dict(attribution.times.filter(pl.col("owner") != WHOLE).select("owner", "time_ns").iter_rows())
    assert found == {owner: ns for owner, ns in times.items() if ns}
    taken = pl.DataFrame({"time_ns": [25 * MS, 61 * MS], "tid": [MAIN] * 2, "cpu_ns": [1] * 2})
    placed = attribute_samples(taken, TABLE, LAYERS)["layer"].cast(pl.String).to_list()
    assert placed == ["rec", own("node")]


def test_energy_is_that_of_the_outermost_calls() -> None:
    """At 10 W."""
    meters = meters_of(series([(at * MS, 0.01 * at) for at in range(-50, 200)]), {})
    found = layer_energies(meters, TABLE, LAYERS, (0,), {})
    assert not isinstance(found, Unavailable)
    assert dict(found.select("layer", "joules").iter_rows())["rec"] == pytest.approx(0.3)


def test_memory_that_an_inner_call_leaves_to_the_outer_one_is_not_kept() -> None:
    changes = [(21, 1, 100), (22, 2, 7), (29, 1, -100), (61, 3, 40), (70, 4, 9), (89.5, 3, -40)]
    rows = [
        {"pass": "trace", "pid": MAIN, "tid": MAIN, "time_ns": int(at * MS), "address": address, "bytes": size}
        for at, address, size in changes
    ]
    found = layer_allocations(pl.DataFrame(rows, schema=TABLES["allocations"]), TABLE, LAYERS, (0,))
    assert not isinstance(found, Unavailable)
    owners = {row["layer"]: row for row in found[0].to_dicts()}
    modules = {row["module"]: row for row in found[1].to_dicts()}
    told = ("allocated_bytes", "freed_bytes", "kept_bytes", "peak_bytes")
    assert [owners["rec"][name] for name in told] == [107, 100, 7, 107]
    assert [owners[own("node")][name] for name in told] == [40, 40, 0, None]
    assert [modules["node"][name] for name in told] == [49, 40, 9, 49]


def test_kernels_are_counted_once(attribution: Attribution) -> None:
    rows: list[dict[str, Any]] = [
        {
            "pass": "engine", "iteration": 0, "span": span, "tid": MAIN, "kernel": 0, "event": "e.instructions",
            "value": value, "provenance": "instrumented",
        }
        for _, span, _, _, value in CYCLES
    ]  # fmt: skip
    names = pl.DataFrame({"kernel": [0], "domain": "torch", "library": "lib.so", "name": ["gemm"]})
    counted = pl.LazyFrame(rows, schema=TABLES["kernel_counts"])
    none_repeated = pl.DataFrame(schema=TABLES["repeated_spans"])
    kernels_of = KernelCounts(TABLE, counted, none_repeated, names, LAYERS, attribution, None)
    found = instrumented.as_text(kernels_of.of_event("e.instructions"))
    kernels = dict(found.select(pl.col("layer").fill_null(WHOLE), pl.col("value") // 1000).iter_rows())
    assert kernels == {owner: ms for owner, ms in TIMES.items() if ms}


def test_a_finding_is_marked_over_the_outermost_calls() -> None:
    finding = Finding("rule", "title", "evidence", "meaning", "remedy", 0.0, 0.5, ("node",))
    found = finding_times([finding], TABLE, LAYERS)
    assert found.select("layer", "begin_ns", "end_ns").rows() == [("node", 40 * MS, 90 * MS)]


def test_primitives_lie_in_the_outermost_call_and_have_their_share_of_it() -> None:
    primitive = {"pass": "trace", "order": 0, "begin_ns": 22 * MS, "time_ns": 6 * MS, "primitive": "matmul",
                 "implementation": "brg:avx2", "data_types": "src:f32", "layouts": "src:ab",
                 "problem": "1x1"}  # fmt: skip
    iteration = spans([(9, None, 0, "iteration", "iteration 0", 0, 100 * MS)])
    table = pl.concat([iteration, TABLE]).with_columns(call=pl.lit(0, pl.Int32))
    found = analyse(pl.DataFrame([primitive], schema=TABLES["primitives"]), table, LAYERS, 10, [])
    assert found.calls["why_not"].to_list() == [None]
    assert found.by_layer.select("path", "share").rows() == [("rec", pytest.approx(0.2))]


def test_traffic_is_that_of_the_outermost_calls() -> None:
    """2 GB/s, then none in the last 10 ms of ``rec``: three windows of which the last counts thrice would have less."""
    read = [(at * MS, 2e6 * min(at, 20)) for at in range(0, 131, 1)]
    found = by_owner(TABLE, LAYERS, series(read, "uncore/dram-read", "B"), (0,)).layers
    rates = dict(found.select("owner", "gbytes_per_s").iter_rows())
    assert rates["rec"] == pytest.approx(40 / 30, rel=0.1)
