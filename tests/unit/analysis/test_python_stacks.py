"""Python's stacks over time, and samples in them."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.python_stacks import (
    STACKS,
    TIMES,
    Looks,
    Origin,
    PythonStacks,
    of_pipeline,
    python_stacks,
    while_alive,
)
from tests.support.looks import EVERY_NS, Frame, Row, frames, of_looks

STACK = st.lists(st.tuples(st.sampled_from("fgh"), st.integers(1, 3)), max_size=4)


def whole(found: PythonStacks, stack: int | None) -> list[Frame]:
    """From the outermost function on."""
    by_number = {row["stack"]: row for row in found.stacks.iter_rows(named=True)}
    functions: list[Frame] = []
    while stack is not None:
        row = by_number[stack]
        functions.insert(0, (row["function"], row["line"]))
        stack = row["parent"]
    return functions


def at(found: PythonStacks, times: list[tuple[int, int]]) -> list[list[Frame]]:
    """Of (time, thread)."""
    met = [found.times.filter(pl.col("begin_ns") <= time, pl.col("end_ns") > time, tid=tid) for time, tid in times]
    return [whole(found, rows["stack"].item() if rows.height else None) for rows in met]


@given(st.lists(STACK, max_size=12), st.lists(STACK, max_size=12))
def test_at_every_time_each_thread_has_the_stack_that_was_met_last(
    first: list[list[Frame]], second: list[list[Frame]]
) -> None:
    found = python_stacks(frames(of_looks(first, tid=1) + of_looks(second, tid=2)), Looks())
    assert (found.stacks.schema, found.times.schema) == (STACKS, TIMES)
    for tid, looks in ((1, first), (2, second)):
        asked = [(EVERY_NS * number + within, tid) for number in range(len(looks) + 1) for within in (0, EVERY_NS - 1)]
        assert at(found, asked) == [stack for stack in [*looks, []] for _ in range(2)]
    for times in found.times.partition_by("tid"):
        assert (times["end_ns"][:-1] <= times["begin_ns"][1:]).all(), "one after the other"
    parents = found.stacks.drop_nulls("parent")
    assert (parents["parent"] < parents["stack"]).all(), "callers come first"
    assert found.stacks.n_unique(["parent", "function", "file", "line"]) == found.stacks.height


def test_a_thread_that_ended_is_on_no_function_also_where_its_number_comes_again() -> None:
    """Who looks sees the last stack of an ended thread until another one is there."""
    rows: list[Row] = [
        (1, 0, "main", 1, 0, 400),
        (7, 0, "f", 3, 10, 90),
        (7, 1, "g", 5, 10, 90),
        (7, 0, "h", 6, 100, 400),
    ]
    rows += [(7, 0, "late", 9, 60, 70), (8, 0, "k", 2, 5, 80)]
    lives = pl.DataFrame(
        {"tid": [1, 7, 7], "born_ns": [None, 5, 95], "ended_ns": [None, 50, 300]},
        schema={"tid": pl.Int32, "born_ns": pl.Int64, "ended_ns": pl.Int64},
    )
    found = while_alive(frames(rows), lives)
    assert sorted(found.select("tid", "function", "begin_ns", "end_ns").rows()) == [
        (1, "main", 0, 400),
        (7, "f", 10, 50),
        (7, "g", 10, 50),
        (7, "h", 100, 300),
        (8, "k", 5, 80),
    ]
    assert found.columns == frames(rows).columns
    assert while_alive(frames(rows), lives.clear()).equals(frames(rows))


def test_between_a_function_s_calls_its_caller_is_on_top() -> None:
    rows: list[Row] = [(1, 0, "f", 3, 0, 100), (1, 1, "g", 5, 20, 40), (1, 1, "h", 6, 60, 70)]
    found = python_stacks(frames(rows), Looks())
    times = [(0, 1), (20, 1), (39, 1), (40, 1), (60, 1), (70, 1), (99, 1), (100, 1)]
    f, g, h = [("f", 3)], [("f", 3), ("g", 5)], [("f", 3), ("h", 6)]
    assert at(found, times) == [f, g, g, f, h, f, f, []]


def test_looks_come_at_random_and_are_late_by_their_mean_distance() -> None:
    assert Looks(100).lag_ns == 10_000_000 and Looks().lag_ns == 0


def test_without_looks_there_are_no_stacks() -> None:
    found = python_stacks(frames([]), Looks())
    assert (found.stacks.schema, found.times.schema) == (STACKS, TIMES)
    assert at(found, [(1, 1)]) == [[]]


LOOKS = Looks(profiler=["/lib/hwprof/session", "/lib/hwprof/cli.py"], framework=["/lib/torch"])


def test_whose_a_file_is() -> None:
    files = {
        "/lib/hwprof/session/worker.py": Origin.PROFILER,
        "/lib/hwprof/cli.py": Origin.PROFILER,
        "<frozen runpy>": Origin.PROFILER,
        "/usr/lib/python3/runpy.py": Origin.PROFILER,
        "/lib/torch/nn/modules/conv.py": Origin.FRAMEWORK,
        "/lib/hwprof/workload/yolo.py": Origin.PIPELINE,
        "/lib/torchvision/ops.py": Origin.PIPELINE,
        "/lib/hwprof/sessions.py": Origin.PIPELINE,
        "/home/me/torch/net.py": Origin.PIPELINE,
        "": Origin.PIPELINE,
    }
    assert LOOKS.origins(pl.Series([*files])).to_list() == [*files.values()]
    assert LOOKS.origins(pl.Series(["", None, "", "/lib/torch"])).to_list() == [
        "pipeline", None, "pipeline", "framework",
    ]  # fmt: skip


def test_what_runs_the_pipeline_from_outside_is_no_part_of_it_and_hooks_within_are() -> None:
    profiler = frames(
        [(1, 0, "main", 3, 0, 90), (1, 2, "hook", 5, 0, 50), (2, 0, "poll", 1, 0, 90)], "/lib/hwprof/cli.py"
    )
    own = frames([(1, 1, "forward", 7, 0, 80), (3, 0, "run", 7, 0, 80)], "net.py")
    found = of_pipeline(pl.concat([profiler, own]), LOOKS)
    assert sorted(found["function"]) == ["forward", "hook", "run"]
    assert found.schema == own.schema
    beside = frames([(1, 1, "stop", 1, 80, 90), (1, 2, "mark", 1, 80, 90)], "/lib/hwprof/cli.py")
    found = of_pipeline(pl.concat([profiler, own, beside]), LOOKS)
    assert sorted(found["function"]) == ["forward", "hook", "run"]
    assert of_pipeline(own, Looks()).equals(own) and of_pipeline(own.clear(), LOOKS).equals(own.clear())
