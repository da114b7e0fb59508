"""What call stacks stand on, however a pass is cut into parts."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest

from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.trace.flame_roots import OUTSIDE, ROOTS, FlameRoots
from tests.support import small_tables as example

MAIN, WORKER, OTHER = 10, 11, 12
RECORD = PassRecord(
    name="trace",
    main_tid=MAIN,
    iterations=[
        IterationRecord(0, True, None, False),
        IterationRecord(1, False, None, False),
        IterationRecord(2, True, None, False, alone_for="onednn_verbose"),
    ],
)
LAYERS = example.layers([("", "Net", False), ("a", "Block", False), ("a.conv", "Conv2d", True)])


def iteration(number: int, since: int) -> list[tuple[int, int | None, int, str, str, int, int]]:
    """Stages of 100 ns: load, and the inference, with 20 ns before the model, and its block around a convolution."""
    first = 10 * number
    return [
        (first, None, number, "iteration", f"iteration {number}", since, since + 220),
        (first + 1, first, number, "stage", "load", since, since + 100),
        (first + 2, first, number, "stage", "inference", since + 100, since + 200),
        (first + 3, first + 2, number, "layer", "", since + 120, since + 190),
        (first + 4, first + 3, number, "layer", "a", since + 130, since + 180),
        (first + 5, first + 4, number, "layer", "a.conv", since + 140, since + 160),
        (first + 6, None, number, "op", "aten::conv2d", since + 142, since + 158),
        (first + 7, None, number, "op", "aten::copy_", since + 90, since + 110),
    ]


SPANS = example.spans([row for number in range(3) for row in iteration(number, 1000 * number)])
EXPECTED = {
    -50: (OUTSIDE, None, None, None),
    50: ("warm-up", "load", None, None),
    1050: (None, "load", None, None),
    1095: (None, "load", None, "aten::copy_"),
    1105: (None, None, "unattributed", "aten::copy_"),
    1115: (None, None, "unattributed", None),
    1125: (None, None, "(root) (own)", None),
    1135: (None, None, "a (own)", None),
    1141: (None, None, "a.conv", None),
    1150: (None, None, "a.conv", "aten::conv2d"),
    1205: (None, "between stages", None, None),
    1500: (OUTSIDE, None, None, None),
    2150: ("onednn_verbose only", None, "a.conv", "aten::conv2d"),
}


def rows(cuts: list[int], tid: int = MAIN) -> list[tuple[str | None, ...]]:
    """The roots of all samples, of a thread, from parts that begin at ``cuts``."""
    times = pl.DataFrame({"time_ns": sorted(EXPECTED)}).with_columns(tid=pl.lit(tid, pl.Int32))
    outer = SPANS.filter(pl.col("kind").is_in(["iteration", "stage"]))
    roots = FlameRoots(outer, LAYERS, RECORD, {WORKER})
    found = []
    for since, until in zip([-1000, *cuts], [*cuts, 10_000], strict=True):
        samples = times.filter(pl.col("time_ns").is_between(since, until, closed="left"))
        spans = SPANS.filter(pl.col("begin_ns").is_between(since, until, closed="left"))
        found.append(roots.of(samples, spans, until))
    return pl.concat(found).select(ROOTS).rows()


@pytest.mark.parametrize("cuts", [[], [1000], [1100], [1000, 1100, 1120, 2000], list(range(-900, 3000, 7))])
def test_a_sample_stands_on_what_ran_then(cuts: list[int]) -> None:
    """A stage that began in the part before, and an operator that goes on into the next one, count too."""
    assert dict(zip(sorted(EXPECTED), rows(cuts), strict=True)) == EXPECTED


def test_the_calling_threads_operators_are_its_own_and_its_teams() -> None:
    assert rows([], WORKER) == rows([], MAIN)
    assert rows([], OTHER) == [(*roots[:3], None) for roots in rows([], MAIN)]


def test_layers_that_are_laid_out_have_no_stacks() -> None:
    record = msgspec.structs.replace(RECORD, laid_out=True)
    outer = SPANS.filter(pl.col("kind").is_in(["iteration", "stage"]))
    samples = pl.DataFrame({"time_ns": [1050, 1141]}).with_columns(tid=pl.lit(MAIN, pl.Int32))
    found = FlameRoots(outer, LAYERS, record).of(samples, SPANS, 10_000)
    assert found["layer"].to_list() == [None, "unattributed"]
