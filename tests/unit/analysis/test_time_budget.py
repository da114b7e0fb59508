"""Where time goes: code by its part, and parts that add up."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.attribution import attribute
from hwprof.analysis.block_budgets import block_budgets
from hwprof.analysis.layers import layer_table
from hwprof.analysis.samples import attribute_samples
from hwprof.analysis.states import ABSENT, BARRIER, BLOCKED, BUSY, PREEMPTED, WAITING
from hwprof.analysis.thread_times import ThreadTimes
from hwprof.analysis.time_budget import (
    PARTS,
    SCHEMA,
    UNRECORDED,
    awaited,
    nested,
    part_of,
    time_budget,
    without_awaited,
)
from hwprof.hardware import metrics
from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.run.schema import empty
from tests.support.made_up_passes import times_of
from tests.support.made_up_threads import MAIN, MS, OTHER, WORKER, Stretch, recorded, spans_of
from tests.support.small_tables import layers


@pytest.mark.parametrize(
    ("domain", "name", "operator", "part"),
    [
        ("jit", "jit_avx512_common_conv_fwd_kernel_vmm_t", "aten::mkldnn_convolution", "compute"),
        ("jit", None, None, "compute"),
        ("jit", "jit_uni_reorder_kernel_f32", "aten::mkldnn_convolution", "layout"),
        ("torch", "mkl_blas_def_sgemm_kernel_0_zen", "aten::mm", "compute"),
        ("torch", "omp_parallel_acopy_lookahead", "aten::mm", "compute"),  # of MKL, which waits in it too
        ("torch", "at::native::silu_kernel", "aten::silu", "compute"),
        ("torch", "at::native::cpu_max_pool (parallel)", "aten::max_pool2d_with_indices", "compute"),
        ("torch", "at::native::AVX2::direct_copy_kernel", "aten::copy_", "layout"),
        ("torch", "at::native::AVX2::direct_copy_kernel", "aten::cat", "compute"),
        ("torch", "at::native::unfolded2d_copy", "aten::_slow_conv2d_forward", "layout"),
        ("torch", "at::_ops::conv2d::call", None, "dispatch"),
        ("torch", "c10::KernelFunction::call", "aten::add", "dispatch"),
        ("torch", "std::_Hashtable::find", "aten::view", "dispatch"),
        ("torch", "torch::profiler::impl::ThreadLocalSubqueue::begin_op", None, "other"),
        ("torch", None, None, "other"),
        ("python", "_PyEval_EvalFrameDefault", None, "dispatch"),
        ("python", "take_gil", None, "dispatch"),
        ("system", "_int_malloc", "aten::empty", "allocation"),
        ("system", "__memcpy_avx512_unaligned_erms", "aten::_slow_conv2d_forward", "layout"),
        ("system", "__memcpy_avx512_unaligned_erms", "aten::cat", "compute"),
        ("system", "__memcpy_avx512_unaligned_erms", None, "layout"),
        ("system", "__tls_get_addr", "aten::silu", "dispatch"),
        ("system", "futex_wait", None, "waiting"),
        ("kernel", "clear_page_erms", "aten::cat", "page_faults"),
        ("kernel", "unmap_page_range", "aten::cat", "allocation"),
        ("kernel", "finish_task_switch.isra.0", None, "waiting"),
        ("kernel", "handle_softirqs", None, "other"),
        ("openmp", "gomp_barrier_wait_end", None, "waiting"),
        ("openmp", None, None, "waiting"),
        ("other", "my_kernel", None, "compute"),
        ("system", "__memcpy_avx512_unaligned_erms", UNRECORDED, "other"),
        ("torch", "at::native::silu_kernel", UNRECORDED, "compute"),
        (None, None, None, "other"),
    ],
)
def test_code_has_one_part(domain: str | None, name: str | None, operator: str | None, part: str) -> None:
    assert part_of(domain, name, operator) == part


@pytest.mark.parametrize(
    ("entered", "part"),
    [
        (("torch", "at::native::fill_kernel"), "page_faults"),
        (("jit", None), "page_faults"),
        (("python", "PyObject_Call"), "page_faults"),
        (("other", "own_kernel"), "page_faults"),
        (("system", "__memset_avx512_unaligned_erms"), "page_faults"),
        (("system", "munmap"), "allocation"),
        (("system", "madvise"), "allocation"),
        (("system", "read"), "other"),
        (("openmp", "gomp_team_barrier_wait_end"), "other"),
        ((None, None), "other"),
    ],
)
@pytest.mark.parametrize(
    "name", ["_raw_spin_lock", "_raw_spin_unlock_irqrestore", "___pte_offset_map", "irqentry_exit"]
)
def test_what_serves_all_of_the_kernel_counts_for_what_it_was_entered_for(
    name: str, entered: tuple[str | None, str | None], part: str
) -> None:
    assert part_of("kernel", name, "aten::fill_", *entered) == part


def test_an_interrupt_is_none_of_the_code_that_it_meets() -> None:
    assert part_of("kernel", "handle_softirqs", "aten::fill_", "torch", "at::native::fill_kernel") == "other"


@given(
    st.none() | st.sampled_from(["jit", "torch", "openmp", "python", "system", "kernel", "other", "new"]),
    st.none() | st.text(max_size=30),
    st.none() | st.text(max_size=12),
)
def test_any_code_has_one_of_the_parts(domain: str | None, name: str | None, operator: str | None) -> None:
    assert part_of(domain, name, operator) in PARTS


def times(threads: dict[int, list[Stretch]]) -> ThreadTimes:
    """One layer for 100 ms, in each of two iterations; busy code is torch's, in no kernel: dispatch."""
    return times_of(threads, [(0, 100 * MS), (100 * MS, 200 * MS)])


def shares(found: pl.DataFrame, column: str = "share") -> dict[str, float]:
    return dict(found.filter(layer="a").select("part", column).iter_rows())


def test_what_the_calling_thread_did_adds_up_to_the_elapsed_time() -> None:
    mine = [(50 * MS, BUSY), (20 * MS, WAITING), (10 * MS, BARRIER), (15 * MS, PREEMPTED), (5 * MS, "I/O")] * 2
    found = time_budget(times({MAIN: mine, WORKER: [(200 * MS, BUSY)]}))
    assert found.schema == SCHEMA
    own = shares(found)
    assert own["dispatch"] == pytest.approx(0.5, abs=0.02)
    assert own["waiting"] == pytest.approx(0.3, abs=0.02) and own["preempted"] == pytest.approx(0.15)
    assert own[BLOCKED] == pytest.approx(0.05)
    assert sum(own.values()) == pytest.approx(1)
    assert sum(shares(found, "ns").values()) == pytest.approx(100 * MS)
    threads = shares(found, "threads_share")
    assert threads["dispatch"] == pytest.approx(0.75, abs=0.02) and sum(threads.values()) == pytest.approx(1)


def test_what_is_off_a_processor_has_no_error_of_sampling() -> None:
    """Half of the time asleep, the rest shared by two parts of which samples tell: their intervals are of that half."""
    found = time_budget(times({MAIN: [(25 * MS, BUSY), (25 * MS, WAITING), (50 * MS, "I/O")] * 2}))
    low, high = shares(found, "share_low"), shares(found, "share_high")
    assert low[BLOCKED] == high[BLOCKED] == shares(found)[BLOCKED] == pytest.approx(0.5)
    for part in ("dispatch", "waiting"):
        assert 0 < low[part] < shares(found)[part] < high[part] < 0.5
    both = time_budget(times({MAIN: [(40 * MS, BUSY), (30 * MS, WAITING), (30 * MS, BARRIER)] * 2}))
    low, high = shares(both, "share_low"), shares(both, "share_high")
    own = shares(both)["waiting"]  # at a barrier, which is known, and spinning
    assert 0.3 < low["waiting"] < own < high["waiting"] < 1


BRANCH = [("a", 0, 20 * MS), ("b", 20 * MS, 100 * MS)]


def test_a_layer_that_another_thread_calls_has_that_threads_time() -> None:
    """The one that calls the model joins it meanwhile: of the inference no time is blocked but the other's own."""
    mine, other = [(20 * MS, BUSY), (80 * MS, "condition")], [(20 * MS, ABSENT), (70 * MS, BUSY), (10 * MS, "I/O")]
    found = time_budget(times_of({MAIN: mine, WORKER: other}, [(0, 100 * MS)], calls=BRANCH, callers={"b": WORKER}))
    of_b = dict(found.filter(layer="b").select("part", "share").iter_rows())
    assert of_b == pytest.approx({"dispatch": 70 / 80, BLOCKED: 10 / 80})
    assert shares(found) == pytest.approx({"dispatch": 1})
    whole = dict(found.filter(pl.col("layer").is_null()).select("part", "ns").iter_rows())
    assert whole == pytest.approx({"dispatch": 90 * MS, BLOCKED: 10 * MS})
    assert found.filter(layer="b")["of_samples"].unique().to_list() == [70]


ABREAST = [("a", 0, 90 * MS), ("b", 10 * MS, 100 * MS), ("c", 20 * MS, 50 * MS)]
"""Three layers at a time: ``b`` and ``c`` on threads of their own, ``c`` the last to begin."""


def test_layers_that_run_at_the_same_time_have_each_all_of_their_own_threads_time() -> None:
    """Of the inference, and of what is around the layers, the time goes by once."""
    threads = {
        MAIN: [(60 * MS, BUSY), (30 * MS, "I/O"), (10 * MS, BUSY)],
        WORKER: [(10 * MS, ABSENT), (80 * MS, BUSY), (10 * MS, PREEMPTED)],
        OTHER: [(20 * MS, ABSENT), (30 * MS, WAITING), (50 * MS, ABSENT)],
    }
    times = times_of(threads, [(0, 100 * MS)], calls=ABREAST, callers={"b": WORKER, "c": OTHER})
    found = time_budget(times)
    parts = {one["path"]: {part["part"]: part["ns"] for part in one["parts"] if part["ns"]} for one in nested(found)}
    assert parts["a"] == pytest.approx({"dispatch": 60 * MS, BLOCKED: 30 * MS})
    assert parts["b"] == pytest.approx({"dispatch": 80 * MS, PREEMPTED: 10 * MS})
    assert parts["c"] == pytest.approx({"waiting": 30 * MS})
    assert sum(parts[None].values()) == pytest.approx(100 * MS)
    around = {one["path"]: one["elapsed_ns"] for one in nested(block_budgets(times, layers([("", "Net", False)])))}
    assert around == pytest.approx({"": 100 * MS})
    assert times.taken.inside.filter(layer="a")["tid"].unique().to_list() == [MAIN]
    assert times.taken.inside.filter(layer="c").height == 30


def test_a_thread_that_slept_in_the_layer_that_it_called_needs_no_sample() -> None:
    mine, other = [(20 * MS, BUSY), (80 * MS, "condition")], [(20 * MS, ABSENT), (80 * MS, "I/O")]
    found = time_budget(times_of({MAIN: mine, WORKER: other}, [(0, 100 * MS)], calls=BRANCH, callers={"b": WORKER}))
    assert dict(found.filter(layer="b").select("part", "ns").iter_rows()) == pytest.approx({BLOCKED: 80 * MS})


@pytest.mark.parametrize(
    ("state", "on", "doing", "left"),
    [
        ("condition", WORKER, BUSY, 0.3),  # of the 50 ms it worked for 20
        ("condition", WORKER, PREEMPTED, 0.3),
        ("condition", WORKER, "I/O", 0.5),
        ("condition", MAIN, BUSY, 0.5),
        ("GIL", WORKER, BUSY, 0.0),  # dispatch, all of it
    ],
)
def test_a_wait_for_another_thread_that_works_is_told_apart(state: str, on: int, doing: str, left: float) -> None:
    found = times_of({MAIN: [(50 * MS, BUSY), (50 * MS, state)], WORKER: [(100 * MS, BUSY)]}, [(0, 100 * MS)])
    waits = found.moments.filter(~pl.col("sampled"))
    path = [
        waits.with_columns(
            on=pl.lit(tid, pl.Int32), doing=pl.lit(what), cause=pl.lit(state), ns=pl.lit(ns * MS, pl.Int64)
        )
        for tid, what, ns in ((on, doing, 20), (MAIN, state, 30))
    ]
    changed = replace(found, path=pl.concat(path))
    whole, layer = without_awaited(nested(time_budget(changed)), awaited(changed))
    for one in (whole, layer):
        blocked = [part for part in one["parts"] if part["part"] == BLOCKED]
        assert sum(part["share"] for part in blocked) == pytest.approx(left)
        assert all(part["share_low"] <= part["share"] <= part["share_high"] for part in blocked)


def test_the_interpreters_lock_new_pages_and_stops_have_their_parts() -> None:
    mine = [(40 * MS, BUSY), (30 * MS, "GIL"), (20 * MS, "page fault"), (10 * MS, "stopped")] * 2
    own = shares(time_budget(times({MAIN: mine})))
    assert own["dispatch"] == pytest.approx(0.4 + 0.3) and own["page_faults"] == pytest.approx(0.2)
    assert own["other"] == pytest.approx(0.1)


def test_the_whole_comes_first_and_a_layer_of_few_samples_is_left_out() -> None:
    found = time_budget(times({MAIN: [(4 * MS, BUSY), (96 * MS, WAITING)] * 2}))
    assert [one["path"] for one in nested(found)] == [None, "a"]
    few = time_budget(times_of({MAIN: [(8 * MS, BUSY)]}, [(0, 4 * MS), (4 * MS, 8 * MS)]))
    assert [one["path"] for one in nested(few)] == [None]


def test_a_layer_that_was_hardly_on_a_processor_is_kept_though_a_sample_met_it_as_it_went_to_wait() -> None:
    waits = [(1 * MS, WAITING), (39 * MS, BARRIER)]
    found = time_budget(times_of({MAIN: waits * 2}, [(0, 40 * MS), (40 * MS, 80 * MS)]))
    assert [(one["path"], one["samples"]) for one in nested(found)] == [(None, 2), ("a", 2)]
    assert shares(found) == pytest.approx({"waiting": 1})


def test_layers_that_no_sample_met_are_of_the_whole_by_all_samples_and_have_nothing_of_their_own() -> None:
    """A call of 50 us between samples of 1 ms, which first come after half of one."""
    ends = 30 * MS + 50_000
    found = time_budget(
        times_of({MAIN: [(ends, BUSY)]}, [(0, ends)], calls=[("a", 0, 30 * MS), ("short", 30 * MS, ends)])
    )
    assert [one["path"] for one in nested(found)] == [None, "a"]
    whole = dict(found.filter(pl.col("layer").is_null()).select("part", "share").iter_rows())
    assert whole == pytest.approx({"dispatch": 1.0})


def test_a_block_has_all_that_is_in_it_also_what_is_too_short_to_be_told_alone() -> None:
    """Layers of 4 ms have too few samples for a budget of their own."""
    calls = [
        ("b.0", 0, 60 * MS),
        *((f"b.{place}", (56 + 4 * place) * MS, (60 + 4 * place) * MS) for place in range(1, 11)),
    ]
    mine = [(60 * MS, BUSY), *[(2 * MS, BUSY), (2 * MS, WAITING)] * 10]
    times = times_of({MAIN: mine}, [(0, 100 * MS)], calls=calls)
    assert [one["path"] for one in nested(time_budget(times))] == [None, "b.0"]
    known = layers([("", "Net", False), ("b", "Blocks", False), *((path, "C", True) for path, _, _ in calls)])
    found = {one["path"]: one for one in nested(block_budgets(times, known))}
    assert set(found) == {"", "b"}
    parts = {one["part"]: one for one in found["b"]["parts"]}
    assert found["b"]["elapsed_ns"] == pytest.approx(100 * MS) and found["b"]["samples"] == 100
    assert {name: one["share"] for name, one in parts.items()} == pytest.approx({"dispatch": 0.8, "waiting": 0.2})


def test_a_block_on_a_thread_of_its_own_has_all_of_that_threads_time_and_the_one_around_it_once() -> None:
    calls = [("a.0", 0, 40 * MS), ("a.1", 40 * MS, 90 * MS), ("b", 10 * MS, 100 * MS)]
    threads = {MAIN: [(100 * MS, BUSY)], WORKER: [(90 * MS, BUSY), (10 * MS, ABSENT)], OTHER: [(100 * MS, BUSY)]}
    times = times_of(threads, [(0, 100 * MS)], calls=calls, callers={"a.0": WORKER, "a.1": WORKER, "b": OTHER})
    inner = times.taken.spans.with_columns(
        parent=pl.when(pl.col("path").str.starts_with("a.")).then(99)  # called by the block on its thread
    )
    times = replace(times, taken=replace(times.taken, spans=inner))
    known = layers([("", "Net", False), ("a", "A", False), *((path, "C", True) for path, _, _ in calls)])
    found = {one["path"]: one["elapsed_ns"] for one in nested(block_budgets(times, known))}
    assert found == pytest.approx({"": 100 * MS, "a": 90 * MS})


def test_a_modules_own_code_on_a_thread_of_its_own_is_its_own_whatever_runs_elsewhere() -> None:
    """``a`` calls a leaf for 10 ms and works for 80; ``b`` sleeps on another thread all the while."""
    calls = [("a", 0, 90 * MS), ("a.0", 0, 10 * MS), ("b", 5 * MS, 100 * MS)]
    threads = {
        MAIN: [(100 * MS, "condition")],
        WORKER: [(90 * MS, BUSY), (10 * MS, ABSENT)],
        OTHER: [(5 * MS, ABSENT), (95 * MS, "sleep")],
    }
    spans = spans_of(calls, [(0, 100 * MS)], callers={"a": WORKER, "a.0": WORKER, "b": OTHER})
    modules = layers([("", "Net", False), ("a", "A", False), ("a.0", "C", True), ("b", "C", True)])
    taken, _ = recorded(threads)
    found = attribute_samples(taken, spans, modules)
    by_layer = dict(found.group_by(pl.col("layer").cast(pl.String)).len().iter_rows())
    assert by_layer == {"a.0": 10, "a (own)": 80}
    record = PassRecord(name="measure", iterations=[IterationRecord(0, False, None, False)])
    times = attribute(spans, empty("counts"), modules, record).times
    own = dict(times.select("owner", "time_ns").iter_rows())
    assert (own["a (own)"], own["a.0"], own["b"]) == (80 * MS, 10 * MS, 95 * MS)


def test_a_thread_that_works_beside_those_that_it_has_begun_has_that_and_not_its_waiting_for_them() -> None:
    """``a`` begins a thread that calls ``a.0``, computes for 35 ms beside it, 5 of the processor's kept from it, and
    joins it."""
    calls = [("", 0, 100 * MS), ("a", 0, 100 * MS), ("a.0", 10 * MS, 90 * MS)]
    threads = {
        MAIN: [(35 * MS, BUSY), (5 * MS, PREEMPTED), (10 * MS, BUSY), (40 * MS, "lock"), (10 * MS, BUSY)],
        WORKER: [(10 * MS, ABSENT), (80 * MS, BUSY), (10 * MS, ABSENT)],
    }
    times = times_of(threads, [(0, 100 * MS)], calls=calls, callers={"a.0": WORKER})
    found = time_budget(times)
    parts = {one["path"]: {part["part"]: part["ns"] for part in one["parts"] if part["ns"]} for one in nested(found)}
    assert parts["a (own)"] == pytest.approx({"dispatch": 55 * MS, PREEMPTED: 5 * MS})
    assert parts["a.0"] == pytest.approx({"dispatch": 80 * MS})
    assert parts[None] == pytest.approx({"dispatch": 135 / 140 * 100 * MS, PREEMPTED: 5 / 140 * 100 * MS})
    inner = found.filter(layer="a.0").select("part", "threads_ns").to_dicts()
    of_threads = {one["part"]: one["threads_ns"] for one in inner if one["threads_ns"]}
    assert of_threads == pytest.approx({"dispatch": 115 * MS, PREEMPTED: 5 * MS, BLOCKED: 40 * MS})
    assert awaited(times)[None] == 0.0


@pytest.mark.parametrize(("begins", "known"), [(10, False), (100, True)])
def test_own_code_that_may_have_worked_beside_other_threads_has_no_rate(begins: int, known: bool) -> None:
    """Its time is what no other layer ran in: 20 ms of 100, and its products took longer."""
    calls = [("a", 0, 100 * MS), ("a.0", begins * MS, (begins + 80) * MS)]
    spans = spans_of(calls, [(0, 200 * MS)], callers={"a.0": WORKER})
    spans = spans.with_columns(span=pl.int_range(pl.len(), dtype=pl.Int64))
    modules = layers([("a", "A", False), ("a.0", "C", True), ("", "Net", False)]).with_columns(
        macs=pl.lit(4 * MS, pl.Int64), own_macs=pl.lit(4 * MS, pl.Int64)
    )
    record = PassRecord(name="measure", iterations=[IterationRecord(0, False, None, False)])
    found = attribute(spans, empty("counts"), modules, record)
    assert found.beside == (frozenset() if known else {"a (own)"})
    machine_independent = metrics.independent()
    table = layer_table(modules, found, machine_independent, 1)
    rates = dict(table.metrics.select("owner", "gflops").iter_rows())
    assert rates["a (own)"] == (pytest.approx(0.08) if known else None) and rates["a.0"] == pytest.approx(0.1)
    assert table.beside == (() if known else ("a (own)",))
    assert dict(table.rows.select("owner", "macs").iter_rows())["a (own)"] == 4 * MS
