"""Processor time by layer and kernel, and how well threads worked together: against plain loops, and by hand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.analysis.parallelism import FEW_FOR_BALANCE, off_cpu, parallelism, threads_by_layer
from hwprof.analysis.sampled_kernels import (
    kernel_table,
    kernels_by_layer,
    layer_table,
    operators_by_layer,
    sampled,
    whole,
    widened,
)
from hwprof.analysis.samples import attribute_samples
from hwprof.analysis.statistics import wilson
from hwprof.analysis.timeline import Timeline
from hwprof.run.schema import TABLES, conform
from tests.support.small_samples import AFTER_WARM_UP, KERNELS, NAMELESS, SILU, WAIT, Row, taken
from tests.support.small_tables import MAIN, WORKER, Example

SAMPLES = st.lists(
    st.tuples(
        st.integers(0, 3500),
        st.sampled_from([MAIN, WORKER]),
        st.sampled_from([SILU, WAIT, NAMELESS]),
        st.integers(1, 50),
        st.none(),
        st.none(),
    ),
    max_size=60,
)


@given(SAMPLES)
def test_processor_time_agrees_with_a_plain_loop_and_none_of_it_is_lost(rows: list[Row]) -> None:
    found = taken(rows)
    cells: dict[tuple[str, int], int] = defaultdict(int)
    for layer, kernel, cpu_ns in found.select("layer", "kernel", "cpu_ns").iter_rows():
        cells[layer, kernel] += cpu_ns
    table = kernels_by_layer(found, KERNELS)
    assert {(row["layer"], row["kernel"]): row["cpu_ns"] for row in table.iter_rows(named=True)} == cells
    whole = sum(cells.values())
    for sums in (table, layer_table(found), kernel_table(found, KERNELS)):
        assert sums["cpu_ns"].sum() == whole
        assert sums["samples"].sum() == found.height
        assert (sums["share_low"] <= sums["share"]).all()
        assert (sums["share"] <= sums["share_high"]).all()
    for sums in (layer_table(found), kernel_table(found, KERNELS)):
        assert sums["share"].sum() == pytest.approx(1 if whole else 0)
    for key, column in (("layer", "share"), ("kernel", "share_of_kernel")):
        for total in table.group_by(key).agg(pl.col(column).sum())[column]:
            assert total == pytest.approx(1)


def test_the_warm_up_and_what_lies_outside_of_the_inference_do_not_count() -> None:
    rows: list[Row] = [(at, MAIN, SILU, 10, None, None) for at in (12, 1012, 1150, 1040)]
    assert dict(layer_table(taken(rows)).select("layer", "cpu_ns").iter_rows()) == {"a": 10, UNATTRIBUTED: 10}


def test_what_a_layer_waits_and_what_of_it_has_a_name() -> None:
    rows: list[Row] = [
        (1012, MAIN, SILU, 30, None, None),
        (1013, WORKER, WAIT, 60, None, None),
        (1014, MAIN, NAMELESS, 10, None, None),
    ]
    (row,) = layer_table(taken(rows)).iter_rows(named=True)
    assert (row["wait_share"], row["named_share"]) == (pytest.approx(0.6), pytest.approx(0.9))


def test_an_openmp_runtime_within_another_library_waits_as_well() -> None:
    example, rows = Example(), [(1012, MAIN, 0, 30), (1013, WORKER, 1, 60), (1014, WORKER, 2, 10)]
    samples = pl.DataFrame(
        rows, schema={n: TABLES["samples"][n] for n in ("time_ns", "tid", "kernel", "cpu_ns")}, orient="row"
    )
    samples = samples.with_columns(
        pl.lit(None, TABLES["samples"][n]).alias(n) for n in ("cycles", "instructions", "llc_misses")
    )
    names = ["gemm", "__kmp_hyper_barrier_release", None]
    kernels = conform(
        "kernels", pl.DataFrame({"kernel": [0, 1, 2], "domain": "other", "library": "librt.so", "name": names})
    )
    found = sampled(attribute_samples(samples, example.spans, example.layers), kernels, AFTER_WARM_UP)
    assert layer_table(found)["wait_share"].to_list() == [pytest.approx(0.6)]


def test_counters_are_those_of_samples_that_have_both() -> None:
    rows: list[Row] = [
        (1012, MAIN, SILU, 10, 300, 100),
        (1013, MAIN, SILU, 10, 100, 100),
        (1014, MAIN, SILU, 10, 5000, None),
        (1055, MAIN, SILU, 10, None, None),
    ]
    found = {row["layer"]: row for row in kernels_by_layer(taken(rows), KERNELS).iter_rows(named=True)}
    assert (found["a"]["cpi"], found["a"]["llc_mpki"]) == (2.0, 100.0)
    assert (found["b"]["cpi"], found["b"]["llc_mpki"]) == (None, None)


def test_code_of_one_name_is_one_kernel() -> None:
    """As a JIT compiler makes it, several times, at several addresses."""
    example = Example()
    kernels = pl.concat(
        [
            KERNELS,
            conform(
                "kernels",
                pl.DataFrame(
                    {"kernel": [3, 4, 5, 6], "domain": ["jit", "jit", "other", "other"],
                     "library": ["jit", "jit", "[unknown]", "liba.so"], "name": ["conv", "conv", None, None],
                     "full_name": ["conv.1", "conv.2", None, None]}
                ),
            ),
        ]
    )  # fmt: skip
    names = ["time_ns", "tid", "kernel", "cpu_ns", "cycles", "instructions", "llc_misses"]
    moments = [(1012, 3), (1013, 4), (1014, 4), (1055, 4), (1056, 5), (1057, NAMELESS), (1058, 6), (1040, 3)]
    rows = [(at, MAIN, kernel, 10, None, None, None) for at, kernel in moments]
    frame = pl.DataFrame(rows, schema={name: TABLES["samples"][name] for name in names}, orient="row")
    found = sampled(attribute_samples(frame, example.spans, example.layers), kernels, AFTER_WARM_UP)
    table = (
        kernel_table(found, kernels).select("library", "name", "full_name", "code_ranges", "samples", "layers").rows()
    )
    assert table[0] == ("jit", "conv", "conv.2", 2, 5, 2), "its most frequent piece's name; between layers is no layer"
    assert sorted(table[1:]) == [("[unknown]", None, None, 2, 2, 1), ("liba.so", None, None, 1, 1, 1)]
    by_layer = kernels_by_layer(found, kernels).filter(name="conv")
    assert by_layer.select("layer", "samples", "share_of_kernel").rows() == [
        ("a", 3, 0.6), ("b", 1, 0.2), (UNATTRIBUTED, 1, 0.2)
    ]  # fmt: skip
    assert whole(found) == (80, 8.0)


def test_operators_of_a_layer() -> None:
    found = taken([(1012, MAIN, SILU, 10, None, None), (1055, MAIN, SILU, 10, None, None)] * 2)
    found = found.with_columns(operator=pl.Series(["aten::a", None, None, None], dtype=pl.Enum(["aten::a"])))
    assert operators_by_layer(found).rows() == [
        ("b", None, 2, 20, 1.0),
        ("a", None, 1, 10, 0.5),
        ("a", "aten::a", 1, 10, 0.5),
    ]


@given(st.integers(0, 200), st.integers(1, 200))
def test_the_interval_is_wilsons(hits: int, trials: int) -> None:
    """Its ends are the shares for which the draws are just 1.96 standard errors away."""
    share = min(hits, trials) / trials
    low, high = wilson(pl.col("share"), pl.col("trials"))
    frame = pl.DataFrame({"share": [share], "trials": [trials]}).select(low=low, high=high)
    for end in frame.row(0):
        assert abs(share - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / trials), abs=1e-6)


def test_unequal_weights_are_worth_fewer_draws() -> None:
    def width(weights: list[int]) -> float:
        rows: list[Row] = [(1012, MAIN, kernel, weight, None, None) for weight in weights for kernel in (SILU, WAIT)]
        (row, _) = kernels_by_layer(taken(rows), KERNELS).iter_rows(named=True)
        return float(row["share_high"] - row["share_low"])

    assert width([1, 1, 1, 97]) > 1.4 * width([25, 25, 25, 25])


def test_efficiency_and_imbalance_of_a_layer() -> None:
    rows: list[Row] = [
        (1012, MAIN, SILU, 30, None, None),
        (1012, WORKER, SILU, 10, None, None),
        (1013, WORKER, WAIT, 20, None, None),
        (1055, MAIN, SILU, 40, None, None),
        (1090, WORKER, WAIT, 5, None, None),
    ]
    threads = threads_by_layer(taken(rows))
    assert threads.rows() == [("a", MAIN, 1, 1, 30, 0), ("a", WORKER, 3, 1, 10, 25), ("b", MAIN, 1, 1, 40, 0)]
    times = pl.DataFrame({"layer": ["a", "b", "c"], "time_ns": [40, 40, 40]})
    many = threads.with_columns(pl.col("busy_samples") * FEW_FOR_BALANCE)
    found = parallelism(many, times, 2).select("layer", "efficiency", "imbalance").rows()
    assert found == [("a", pytest.approx(0.5), pytest.approx(0.5)), ("b", pytest.approx(0.5), pytest.approx(1.0))]


@pytest.mark.parametrize(("busy", "known"), [((FEW_FOR_BALANCE, 0), True), ((20, 9), False), ((20, 10), True)])
def test_samples_of_waiting_tell_nothing_of_the_balance(busy: tuple[int, int], known: bool) -> None:
    """However many there are; nor do those of threads that have no part in the work."""
    beside = (100, 1, 1_000)  # a third thread, hardly busy
    each = [*((number, number, 10_000 * number) for number in busy), beside]
    names = ["samples", "busy_samples", "busy_ns"]
    rows = pl.DataFrame(each, schema=names, orient="row").with_columns(
        pl.col("samples") + 1000, layer=pl.lit("a"), tid=pl.int_range(3)
    )
    times = pl.DataFrame({"layer": ["a"], "time_ns": [1_000_000]})
    row = parallelism(rows, times, 2).row(0, named=True)
    assert (row["imbalance"] is not None) is known
    assert row["efficiency"] == pytest.approx(sum(busy) / 200, abs=1e-3), "a share of all of the time"


def by_thread(busy: Sequence[int]) -> pl.DataFrame:
    return pl.DataFrame({"layer": "a", "tid": range(len(busy)), "busy_ns": busy, "busy_samples": FEW_FOR_BALANCE})


@pytest.mark.parametrize(
    ("busy", "threads", "sharing", "efficiency", "imbalance"),
    [
        ([1, 90, 90, 90, 90], 1, 4, 0.9, 0.0),  # a pool of the model's own; the calling thread waits for it
        ([90, 90, 5], 2, 2, 0.9, 0.0),  # a thread with something else to do
        ([90, 0, 0, 0], 4, 4, 0.225, 3.0),
        ([20, 100], 1, 2, 0.6, 2 / 3),
        ([0, 0, 0], 1, 1, 0.0, None),  # threads that only waited share nothing
    ],
)
def test_work_is_shared_by_the_threads_that_are_busy(
    busy: list[int], threads: int, sharing: int, efficiency: float, imbalance: float | None
) -> None:
    times = pl.DataFrame({"layer": ["a"], "time_ns": [100]})
    row = parallelism(by_thread(busy), times, threads).row(0, named=True)
    assert row["threads"] == sharing
    assert (row["efficiency"], row["imbalance"]) == (pytest.approx(efficiency), pytest.approx(imbalance))


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.integers(1, 4))
def test_no_thread_is_less_busy_than_possible(busy: list[int], threads: int) -> None:
    times = pl.DataFrame({"layer": ["a"], "time_ns": [100]})
    for row in parallelism(by_thread(busy), times, threads).iter_rows(named=True):
        assert 0 <= row["efficiency"] <= 1 + 1e-9
        assert row["imbalance"] is None or row["imbalance"] >= -1e-9


def switches(rows: list[tuple[int | None, int | None, bool | None]]) -> pl.DataFrame:
    schema = {name: TABLES["switches"][name] for name in ("out_ns", "in_ns", "preempted")}
    return conform("switches", pl.DataFrame(rows, schema=schema, orient="row").with_columns(tid=pl.lit(WORKER)))


def test_time_off_a_processor_is_shared_out_to_the_layers_that_ran() -> None:
    """From within the first `a` (1011 to 1022) into `b` (1050 to 1080), the inference being 1010 to 1111."""
    example = Example()
    rows = switches([(1015, 1060, False), (1070, 1075, True), (None, 1100, None), (1100, None, False), (12, 20, False)])
    found = off_cpu(rows, example.spans, example.layers, AFTER_WARM_UP)
    assert found.rows() == [
        ("a", WORKER, 1, 7, 0, 7),
        ("b", WORKER, 2, 15, 5, 10),
        (UNATTRIBUTED, WORKER, 1, 28, 0, 28),
    ]


def test_one_absence_over_two_calls_of_a_layer_is_one() -> None:
    """Both calls of `a` (1011 to 1022, 1085 to 1105) lie in it."""
    example = Example()
    found = off_cpu(switches([(1005, 1108, True)]), example.spans, example.layers, AFTER_WARM_UP)
    assert found.filter(layer="a").select("times", "off_cpu_ns", "preempted_ns").rows() == [(1, 31, 31)]


MOMENTS = st.integers(0, 30)
INTERVALS = st.lists(st.tuples(MOMENTS, MOMENTS).map(lambda pair: (min(pair), max(pair))), max_size=10)


@given(INTERVALS, INTERVALS)
def test_overlaps_agree_with_counting_moments(owners: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    frame = pl.DataFrame(owners, schema={"begin_ns": pl.Int64, "end_ns": pl.Int64}, orient="row")
    timeline = Timeline.of(frame)
    expected: dict[tuple[int, int], int] = defaultdict(int)
    for number, (begin, end) in enumerate(asked):
        for owner in timeline.at(np.arange(begin, end)).tolist():
            if owner >= 0:
                expected[number, owner] += 1
    begins, ends = np.array(asked, dtype=np.int64).reshape(-1, 2).T
    found: dict[tuple[int, int], int] = defaultdict(int)
    for interval, owner, shared in zip(*(part.tolist() for part in timeline.overlaps(begins, ends)), strict=True):
        found[interval, owner] += shared
    assert found == expected


def test_time_without_samples_widens_intervals() -> None:
    """Of 100 ns 60 are seen in the one kernel; 25 more may have been spent anywhere."""
    ends = {"share_low": [0.5, 0.3, 0.0], "share_high": [0.7, 0.5, 0.1]}
    table = pl.DataFrame({"cpu_ns": [60, 40, 0], "share": [0.6, 0.4, 0.0], **ends})
    found = widened(table, 25.0)
    assert found["share"].to_list() == table["share"].to_list()
    assert found["share_low"].to_list() == pytest.approx([0.5 * 0.8, 0.3 * 0.8, 0.0])
    assert found["share_high"].to_list() == pytest.approx([0.7 * 0.8 + 0.2, 0.5 * 0.8 + 0.2, 0.1])
    assert widened(table, 0.0) is table
