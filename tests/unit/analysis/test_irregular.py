"""Layers that iterations call a different number of times: nobody's counts are joined with another iteration's time."""

from __future__ import annotations

import polars as pl

from hwprof.analysis import irregular
from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.instrumented import calls_differ
from hwprof.analysis.layers import layer_table
from hwprof.analysis.owners import ROOT, WHOLE
from hwprof.run.manifest import Disturbance, IterationRecord, PassRecord
from hwprof.run.schema import empty
from tests.support.small_tables import spans

CALM = Disturbance(elapsed_ns=1000, preemptions=0, waited_ns=0, stolen_ns=0)
BUSY = Disturbance(elapsed_ns=1000, preemptions=9, waited_ns=900, stolen_ns=0)

MODULES = pl.DataFrame(
    {
        "path": [ROOT, "often", "once"],
        "type": ["Model", "Work", "Work"],
        "leaf": [False, True, True],
        "order": [0, 1, 2],
        "calls": [1, 1, 1],
        "parameters": 0,
        "macs": [2000, 1000, 1000],
        "own_macs": 0,
        "bytes": 8,
        **dict.fromkeys(("input_shapes", "output_shapes"), "1x4"),
        "more_shapes": 0,
        "index": 0,
    }
)


def tree(numbers: list[int]) -> pl.DataFrame:
    """Iterations whose root calls the one layer so many times, and the other one once."""
    rows: list[tuple[int, int | None, int, str, str, int, int]] = []
    for index, number in enumerate(numbers):
        at, root = 1000 * index, len(rows) + 1
        rows += [
            (root - 1, None, index, "stage", "inference", at, at + 900),
            (root, root - 1, index, "layer", ROOT, at, at + 900),
        ]
        rows += [(root + 1 + n, root, index, "layer", "often", at + 10 * n, at + 10 * n + 5) for n in range(number)]
        rows.append((root + 1 + number, root, index, "layer", "once", at + 800, at + 850))
    return spans(rows)


def record(name: str, disturbed: list[bool]) -> PassRecord:
    iterations = [
        IterationRecord(index, False, None, False, disturbance=BUSY if busy else CALM)
        for index, busy in enumerate(disturbed)
    ]
    return PassRecord(name=name, iterations=iterations)


def called(numbers: list[int], disturbed: list[bool] | None = None) -> pl.DataFrame:
    pass_record = record("measure", disturbed or [False] * len(numbers))
    return attribute(tree(numbers), empty("counts"), MODULES, pass_record).calls


def test_equal_iterations_are_regular() -> None:
    assert irregular.layers(called([2, 2, 2])) == ()
    assert irregular.uneven(called([2, 2, 2])) == []
    assert irregular.uneven(irregular.none()) == []


def test_who_calls_another_number_of_times_is_uneven_too() -> None:
    assert irregular.layers(called([1, 9, 1])) == ("often",)
    assert irregular.uneven(called([1, 9, 1])) == ["(root) (own)", "often", WHOLE]


def test_a_layer_that_some_iterations_do_not_call_has_figures_of_its_own() -> None:
    """Where it is called it does the same; its caller does not."""
    assert irregular.layers(called([1, 0, 1])) == ("often",)
    assert irregular.uneven(called([1, 0, 1])) == ["(root) (own)", WHOLE]


def test_disturbed_iterations_tell_of_it_though_no_time_is_theirs() -> None:
    numbers, disturbed = [1, 1, 1, 9], [False, False, False, True]
    attribution = attribute(tree(numbers), empty("counts"), MODULES, record("measure", disturbed))
    assert attribution.iterations.left_out == (3,)
    table = layer_table(MODULES, attribution, (), None)
    assert table.irregular == ("often",)
    assert dict(table.rows.select("owner", "macs").iter_rows())[WHOLE] is None


def test_the_other_passes_iteration_is_one_too() -> None:
    assert irregular.layers(irregular.of_both(called([1, 1, 1]), called([1]))) == ()
    both = irregular.of_both(called([1, 1, 1]), called([9]))
    assert irregular.layers(both) == ("often",)
    assert "once" not in irregular.uneven(both)


def test_of_the_pass_that_counts_only_its_counted_iterations_are_compared() -> None:
    """Whose counts are of one call, however often others called it."""

    def attribution(numbers: list[int], counted: list[bool]) -> Attribution:
        iterations = [IterationRecord(index, False, None, one) for index, one in enumerate(counted)]
        return attribute(tree(numbers), empty("counts"), MODULES, PassRecord(name="any", iterations=iterations))

    timed = attribution([1, 2], [False, False])
    assert calls_differ(attribution([2, 1], [False, True]), timed) == 1
    assert calls_differ(attribution([2, 1], [True, True]), timed) == 0


def test_a_call_in_several_parts_is_one() -> None:
    """Which another program than PyTorch makes, in whatever order."""
    numbered = tree([2, 2]).with_columns(
        call=pl.when(path="often").then(pl.when(iteration=1).then(0).otherwise(pl.col("span") % 2)).cast(pl.Int32)
    )
    found = attribute(numbered, empty("counts"), MODULES, record("measure", [False, False]))
    assert irregular.layers(found.calls) == ("often",)
    assert found.times.filter(owner="often").sort("iteration")["calls"].to_list() == [2, 1]
