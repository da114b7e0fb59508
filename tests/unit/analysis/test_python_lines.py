"""Which lines of Python led to which kernels."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.intervals import wilson
from hwprof.analysis.python_lines import LINES, Met, lines, lines_of
from hwprof.analysis.python_stacks import Looks, python_stacks
from tests.support.looks import Row as LookRow
from tests.support.looks import frames
from tests.support.small_samples import AFTER_WARM_UP, KERNELS, NAMELESS, SILU, WAIT, Row, taken
from tests.support.small_tables import MAIN, WORKER

TORCH = "/lib/torch/nn/modules/conv.py"
LOOKS = Looks(framework=["/lib/torch"], profiler=["/lib/hwprof"])
NUMBER = len(AFTER_WARM_UP)


def looks(own: list[LookRow], torch: list[LookRow]) -> pl.DataFrame:
    return pl.concat([frames(own, "net.py"), frames(torch, TORCH)])


def told(rows: list[Row], table: pl.DataFrame) -> list[dict[str, Any]]:
    """Each sample has the stack that was met last on the thread that calls the model."""
    python = python_stacks(table, LOOKS)
    samples = taken(rows)
    placed = samples.select("time_ns").join_asof(python.times, left_on="time_ns", right_on="begin_ns")
    met = placed.select(stack=pl.when(pl.col("time_ns") < pl.col("end_ns")).then("stack"))["stack"]
    found = lines(samples, KERNELS, python.stacks, Met(met, met.is_null() & False, None), NUMBER)
    assert found.schema == LINES
    return found.to_dicts()


def intervals(by_time: list[bool], looks: float | None) -> list[tuple[float, float] | None]:
    """Of two lines, of ten samples each; which of the first line's go by time."""
    table = frames([(MAIN, 0, "f", 1, 1000, 1100), (MAIN, 0, "f", 2, 1100, 1200)], "net.py")
    python = python_stacks(table, LOOKS)
    samples = taken([sample(1010 + 2 * n, SILU, 5) for n in range(20)])
    met = Met(pl.Series([0] * 10 + [1] * 10, dtype=pl.Int32), pl.Series(by_time + [False] * 10), looks)
    found = lines(samples, KERNELS, python.stacks, met, NUMBER).filter(pl.col("kernel").is_null()).sort("line")
    both = found.select("share_low", "share_high").rows()
    return [None if low is None else (low, high) for low, high in both]


def test_the_interval_of_a_share_comes_from_samples_and_where_it_goes_by_time_from_looks() -> None:
    by_call = pytest.approx(wilson(0.5, 20))
    assert intervals([False] * 10, None) == [by_call, by_call]
    assert intervals([True] * 10, 5) == [pytest.approx(wilson(0.5, 4)), by_call], "1/20 + 1/5"
    half = 1 / (1 / 20 + 0.25 * 0.75 / 0.25 / 5)
    assert intervals([True] * 5 + [False] * 5, 5) == [pytest.approx(wilson(0.5, half)), by_call]
    assert intervals([True] * 10, None) == [None, by_call]


def sample(time_ns: int, kernel: int, cpu_ns: int, tid: int = MAIN) -> Row:
    return time_ns, tid, kernel, cpu_ns, None, None


def test_a_line_is_the_innermost_that_is_not_the_framework_s() -> None:
    found = python_stacks(looks([(1, 0, "main", 3, 0, 9), (1, 2, "forward", 7, 0, 9)],
                                [(1, 1, "_call_impl", 5, 0, 9), (1, 3, "_conv_forward", 8, 0, 9)]), LOOKS)  # fmt: skip
    assert lines_of(found.stacks).select("file", "line", "function").rows() == [
        ("net.py", 3, "main"),
        ("net.py", 3, "main"),
        ("net.py", 7, "forward"),
        ("net.py", 7, "forward"),
    ]


def test_code_without_lines_is_no_line() -> None:
    found = python_stacks(frames([(1, 0, "f", 1, 0, 9), (1, 1, "memcpy", 0, 0, 9)], "libc.so.6"), LOOKS)
    assert lines_of(found.stacks)["function"].to_list() == ["f", "f"]


def test_lines_have_the_kernels_of_all_threads_that_worked_for_them() -> None:
    table = looks([(MAIN, 0, "forward", 7, 1000, 1050), (MAIN, 0, "forward", 8, 1050, 2000)],
                  [(MAIN, 1, "_conv_forward", 3, 1000, 2000)])  # fmt: skip
    rows = [
        sample(1010, SILU, 30), sample(1020, SILU, 20, tid=WORKER), sample(1030, NAMELESS, 10),
        sample(1060, SILU, 15), sample(1065, WAIT, 25, tid=WORKER),
    ]  # fmt: skip
    first, *below, second, of_second = told(rows, table)
    assert (first["file"], first["line"], first["function"], first["kernel"]) == ("net.py", 7, "forward", None)
    assert (first["samples"], first["cpu_ns"], first["share"]) == (3, 60 / NUMBER, 0.6)
    assert [(row["kernel"], row["library"], row["samples"]) for row in below] == [
        ("silu", "libtorch_cpu.so", 2),
        ("(unnamed)", "[unknown]", 1),
    ]
    assert [row["share_of_line"] for row in below] == pytest.approx([5 / 6, 1 / 6])
    assert (second["line"], second["cpu_ns"], second["share"]) == (8, 15 / NUMBER, 0.15), "waiting is no work"
    assert of_second["kernel"] == "silu"


def test_what_no_line_led_to_is_told_as_well() -> None:
    table = looks([], [(MAIN, 0, "run", 7, 1000, 1050)])
    found = told([sample(1010, SILU, 30), sample(1060, SILU, 20)], table)
    assert [(row["file"], row["kernel"], row["samples"]) for row in found] == [(None, None, 2), (None, "silu", 2)]


TIMES = st.integers(1000, 3500)
SAMPLES = st.lists(
    st.builds(
        sample, TIMES, st.sampled_from([SILU, WAIT, NAMELESS]), st.integers(1, 50), st.sampled_from([MAIN, WORKER])
    ),
    max_size=40,
)


@given(SAMPLES, st.lists(TIMES, unique=True, max_size=6))
def test_lines_add_up_to_the_work_and_kernels_to_their_lines(rows: list[Row], edges: list[int]) -> None:
    cuts = sorted(edges)
    table = frames([(MAIN, 0, "f", number + 1, *pair) for number, pair in enumerate(pairwise(cuts))])
    found = told(rows, table)
    work: dict[int | None, int] = defaultdict(int)
    for time_ns, kernel, cpu_ns in taken(rows).select("time_ns", "kernel", "cpu_ns").iter_rows():
        if kernel != WAIT:
            line = next((n + 1 for n in range(len(cuts) - 1) if cuts[n] <= time_ns < cuts[n + 1]), None)
            work[line] += cpu_ns
    of_lines = {row["line"]: row["cpu_ns"] * NUMBER for row in found if row["kernel"] is None}
    assert of_lines == pytest.approx(work)
    assert list(of_lines.values()) == sorted(of_lines.values(), reverse=True)
    for line, cpu_ns in of_lines.items():
        below = [row for row in found if row["line"] == line and row["kernel"] is not None]
        assert sum(row["cpu_ns"] for row in below) * NUMBER == pytest.approx(cpu_ns)
        assert sum(row["share_of_line"] for row in below) == pytest.approx(1)
