"""CPU time at work in layers: what a recorder of operators does in them beside the work is not theirs."""

from __future__ import annotations

import math

import polars as pl
import pytest

from hwprof.analysis import no_cpi
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.core_clock import Clock
from hwprof.analysis.instrumented import KERNELS_SCHEMA
from hwprof.analysis.iterations import Iterations
from hwprof.analysis.kernel_cpi import CpiByTime
from hwprof.analysis.sampled_kernels import kernels_by_layer
from hwprof.analysis.work_time import CallersTime, by_layer, callers_time, in_cells, summed
from tests.support.small_samples import AFTER_WARM_UP, KERNELS, NAMELESS, SILU, Row, taken
from tests.support.small_tables import MAIN

GHZ = 4.0
A, B = 1012, 1055
"""When the layers ``a`` and ``b`` of the example run."""

OTHER_THREAD = MAIN + 1
NAMES = {SILU: ("silu", "libtorch_cpu.so", "torch"), NAMELESS: ("(unnamed)", "[unknown]", "other")}


def samples(moment: int, kernel: int, number: int, tid: int = MAIN, cpu_ns: int = 30) -> list[Row]:
    """So many samples, of 10 ns an iteration each."""
    return [(moment, tid, kernel, cpu_ns, None, None)] * number


def callers(counted: dict[str, float], undisturbed: dict[str, float] | None, error_ns: float = 0.0) -> CallersTime:
    rows = [
        {
            "layer": layer,
            "counted_ns": value,
            "undisturbed_ns": undisturbed[layer] if undisturbed else None,
            "undisturbed_error_ns": error_ns if undisturbed else None,
        }
        for layer, value in counted.items()
    ]
    names = ("counted_ns", "undisturbed_ns", "undisturbed_error_ns")
    return CallersTime([MAIN], pl.DataFrame(rows, schema={"layer": pl.String} | dict.fromkeys(names, pl.Float64)))


def by_time(
    rows: list[Row],
    instructions: list[tuple[str, str, float]],
    times: CallersTime,
) -> CpiByTime:
    """``instructions``: (layer, kernel's name, number)."""
    known = {name: keys for name, *keys in NAMES.values()}
    counted = [
        {"layer": layer, "kernel": name, "library": library, "domain": domain, "value": value}
        for layer, name, value in instructions
        for library, domain in [known.get(name, ("libc.so.6", "system"))]
    ]
    frame = pl.DataFrame(
        counted, schema_overrides=KERNELS_SCHEMA, schema=["layer", "kernel", "library", "domain", "value"]
    )
    inside = taken(rows)
    return CpiByTime(inside, kernels_by_layer(inside, KERNELS), frame, len(AFTER_WARM_UP), Clock(GHZ, 0.0), times)


def row_of(frame: pl.DataFrame, **keys: str) -> dict[str, object]:
    (row,) = frame.filter(**keys).iter_rows(named=True)
    return row


def test_a_layer_took_no_more_than_without_the_recorder_of_operators() -> None:
    """80 samples, half of them the recorder's: in functions of its own, and in those of the model."""
    rows = [*samples(A, SILU, 40), *samples(A, NAMELESS, 40)]
    found = by_time(rows, [("a", "silu", 200.0)], callers({"a": 800.0}, {"a": 400.0}))
    layer = row_of(found.layers, layer="a")
    assert layer["cpi"] == pytest.approx(400 * GHZ / 200)
    assert layer["reason"] is None


def test_without_such_a_recorder_all_time_at_work_is_the_layers() -> None:
    found = by_time(samples(A, SILU, 80), [("a", "silu", 200.0)], callers({"a": 800.0}, None))
    assert row_of(found.layers, layer="a")["cpi"] == pytest.approx(800 * GHZ / 200)


def test_other_threads_work_is_no_recorders() -> None:
    rows = [*samples(A, SILU, 80), *samples(A, SILU, 50, OTHER_THREAD)]
    found = by_time(rows, [("a", "silu", 200.0)], callers({"a": 800.0}, {"a": 400.0}))
    assert row_of(found.layers, layer="a")["cpi"] == pytest.approx((400 + 500) * GHZ / 200)


@pytest.mark.parametrize(("sampled_too", "counted_ns"), [((1, 2), 500.0), ((3, 4), None)])
def test_what_was_counted_in_other_iterations_than_samples_is_not_joined_with_them(
    sampled_too: tuple[int, ...], counted_ns: float | None
) -> None:
    """In the one iteration the thread waited for long: samples know, and a median does not."""
    counts = pl.DataFrame(
        {"owner": ["a", "a"], "iteration": [1, 2], "event": ["task-clock"] * 2, "scaled_main": [100.0, 900.0]}
    )
    own = Attribution(pl.DataFrame(), counts, Iterations(pl.DataFrame(), (), (1, 2)), "inference", 0)
    frame = callers_time([MAIN], own, None, sampled_too).frame
    assert frame["counted_ns"].to_list() == ([counted_ns] if counted_ns else [])


def test_layers_with_few_samples_are_put_together_and_those_with_none_count() -> None:
    """Of 100 ns counted in each layer, samples are all in one of them; the sum is that of both."""
    inside = taken(samples(A, SILU, 9))
    layers = pl.DataFrame({"layer": ["a", "b"]})
    times = callers({"a": 100.0, "b": 100.0}, {"a": 80.0, "b": 110.0})
    cells = in_cells(by_layer(inside, layers, times, len(AFTER_WARM_UP)), [])
    assert cells["work_ns"].to_list() == [190.0]
    assert summed(cells, [], inside, len(AFTER_WARM_UP))["samples"].to_list() == [9]


@pytest.mark.parametrize(("error_ns", "surplus"), [(0.0, True), (500.0, False)])
def test_more_than_chance_and_the_other_passs_spread_is_a_surplus(error_ns: float, surplus: bool) -> None:
    inside = taken(samples(A, SILU, 80))
    times = callers({"a": 800.0}, {"a": 400.0}, error_ns)
    cells = in_cells(by_layer(inside, pl.DataFrame({"layer": ["a"]}), times, len(AFTER_WARM_UP)), [])
    assert (cells["surplus_ns"][0] > 0) is surplus


def test_a_kernel_that_the_recorder_may_run_in_has_no_cpi() -> None:
    rows = [*samples(A, SILU, 40), *samples(A, NAMELESS, 40)]
    instructions = [("a", "silu", 100.0), ("a", "(unnamed)", 100.0)]
    found = by_time(rows, instructions, callers({"a": 800.0}, {"a": 400.0}))
    assert {row["reason"] for row in found.kernels.iter_rows(named=True)} == {no_cpi.TRACED}
    undisturbed = by_time(rows, instructions, callers({"a": 800.0}, {"a": 800.0}))
    assert undisturbed.kernels["reason"].null_count() == undisturbed.kernels.height == 4


def test_what_lies_in_code_that_was_not_counted_lies_in_no_other() -> None:
    rows = [*samples(A, SILU, 40), *samples(A, NAMELESS, 40)]
    found = by_time(rows, [("a", "silu", 100.0)], callers({"a": 800.0}, {"a": 400.0}))
    assert row_of(found.kernels.filter(pl.col("layer") == "a"), name="silu")["cpi"] == pytest.approx(400 * GHZ / 100)


def test_a_layer_with_an_impossible_cpi_did_other_work_and_is_in_no_sum() -> None:
    rows = [*samples(A, SILU, 40), *samples(B, SILU, 40)]
    instructions = [("a", "silu", 2.0), ("b", "silu", 1000.0)]
    found = by_time(rows, instructions, callers({"a": 400.0, "b": 400.0}, None))
    assert row_of(found.layers, layer="a")["reason"] == no_cpi.BEYOND
    owners = pl.DataFrame({"layer": ["a", "b"], "owner": ["both", "both"]})
    assert row_of(found.together(owners), owner="both")["cpi"] == pytest.approx(400 * GHZ / 1000)
    of_all = found.kernels.filter(pl.col("layer").is_null())
    assert of_all["instructions"].to_list() == [1000.0]


def test_a_layer_that_goes_by_the_clock_has_no_cpi() -> None:
    instructions = [("a", "silu", 900.0), ("a", "clock_gettime", 100.0)]
    found = by_time(samples(A, SILU, 40), instructions, callers({"a": 400.0}, None))
    assert row_of(found.layers, layer="a")["reason"] == no_cpi.CLOCKED
    assert row_of(found.kernels.filter(pl.col("layer").is_null()), name="silu")["reason"] == no_cpi.CLOCKED
    both = by_time(samples(A, SILU, 40), [*instructions, ("b", "silu", 5.0)], callers({"a": 400.0, "b": 1.0}, None))
    assert row_of(both.kernels.filter(pl.col("layer").is_null()), name="silu")["reason"] == no_cpi.CLOCKED
    seldom = [("a", "silu", 9900.0), ("a", "clock_gettime", 100.0)]
    found = by_time(samples(A, SILU, 40), seldom, callers({"a": 400.0}, None))
    assert row_of(found.layers, layer="a")["reason"] is None


def test_an_error_of_half_of_the_figure_is_no_figure() -> None:
    """Ten samples among many: 6 to 18 of them would be no wonder."""
    rows = [*samples(A, SILU, 10), *samples(B, SILU, 400)]
    found = by_time(rows, [("a", "silu", 100.0), ("b", "silu", 100.0)], callers({}, None))
    assert row_of(found.layers, layer="a")["reason"] == no_cpi.WIDE
    assert row_of(found.kernels.filter(pl.col("layer") == "a"), name="silu")["reason"] == no_cpi.WIDE
    layer = row_of(found.layers, layer="b")
    assert layer["reason"] is None and isinstance(layer["cpi_low"], float) and not math.isnan(layer["cpi_low"])
