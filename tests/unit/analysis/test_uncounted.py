"""Counts that lack the work of threads that nobody followed are no figures; sums stay what they are."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from hwprof.analysis import uncore, uncounted
from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.figure_tables import Further, figure_tables
from hwprof.analysis.iterations import select
from hwprof.analysis.layer_types import layer_type_table
from hwprof.analysis.layers import layer_table
from hwprof.analysis.loaded_pass import LoadedPass
from hwprof.analysis.owners import ROOT, UNATTRIBUTED, WHOLE, own
from hwprof.analysis.stages import stage_table
from hwprof.run.process_events import COUNTED_CPU_TIME, UNCOUNTED_CPU_TIME, WHOLE_PROCESS_TID
from hwprof.run.schema import empty
from tests.support.small_tables import MAIN, MS, counts, layers, record, spans

EVENT = "instructions"
MODULES = layers([(ROOT, "Net", False), ("a", "Linear", True), ("b", "Linear", True), ("c", "ReLU", True)])
SPANS = spans(
    [
        (0, None, 0, "iteration", "iteration 0", 0, 100 * MS),
        (1, 0, 0, "stage", "inference", 0, 100 * MS),
        (2, 1, 0, "layer", ROOT, 0, 98 * MS),
        (3, 2, 0, "layer", "a", 0, 30 * MS),
        (4, 2, 0, "layer", "b", 30 * MS, 60 * MS),
        (5, 2, 0, "layer", "c", 60 * MS, 90 * MS),
    ]
)
COUNTED = {1: 1000, 2: 990, 3: 300, 4: 300, 5: 300}
RECORD = record([(0, False, 0, True)], [[EVENT]])


def rows(uncounted_ns: dict[int, int]) -> pl.DataFrame:
    """Counts, and as much CPU time of the counted threads as the spans are long."""
    length_ns = dict(SPANS.select("span", pl.col("end_ns") - pl.col("begin_ns")).iter_rows())
    return counts(
        [
            row
            for span, value in COUNTED.items()
            for row in (
                (0, span, MAIN, EVENT, value),
                (0, span, WHOLE_PROCESS_TID, COUNTED_CPU_TIME, length_ns[span]),
                (0, span, WHOLE_PROCESS_TID, UNCOUNTED_CPU_TIME, uncounted_ns.get(span, 0)),
            )
        ]
    )


def attributed(uncounted_ns: dict[int, int]) -> Attribution:
    return attribute(SPANS, rows(uncounted_ns), MODULES, RECORD)


def figures(found: Any) -> dict[str, float | None]:
    return dict(found.counters.filter(event=EVENT).select("owner", "value").iter_rows())


def test_only_the_layer_in_which_others_worked_lacks_counts() -> None:
    found = layer_table(MODULES, attributed({1: MS, 2: MS, 4: MS}), (), None)
    assert figures(found) == {own(ROOT): 90, "a": 300, "b": None, "c": 300, UNATTRIBUTED: 10, WHOLE: 1000}
    assert found.uncounted == {"b": MS}, "1% of the whole is no reason to leave its counts out"


def test_what_was_counted_stays_as_it_was_and_adds_up() -> None:
    made = attributed({1: 50 * MS, 2: 50 * MS, 4: 50 * MS}).counts
    assert set(made["event"]) == {EVENT}
    values = dict(made.select("owner", "value").iter_rows())
    assert values[WHOLE] == sum(value for owner, value in values.items() if owner != WHOLE)
    lacking = made.filter(pl.col("scaled").is_null())
    assert sorted(lacking["owner"]) == ["b", WHOLE]


def test_a_module_is_not_told_what_happened_in_its_layers() -> None:
    found = layer_table(MODULES, attributed({1: 7 * MS, 2: 7 * MS, 4: 4 * MS}), (), None)
    assert found.uncounted == {own(ROOT): 3 * MS, "b": 4 * MS, WHOLE: 7 * MS}


@pytest.mark.parametrize("ns", [uncounted.LEAST_NS - 1, int(uncounted.SHARE * 30 * MS)])
def test_little_is_no_reason(ns: int) -> None:
    assert layer_table(MODULES, attributed({4: ns}), (), None).uncounted == {}


def test_a_type_lacks_what_one_of_its_layers_lacks() -> None:
    found = layer_type_table(MODULES, attributed({1: MS, 2: MS, 4: MS}), (), None)
    values = figures(found)
    assert (values["Linear"], values["ReLU"]) == (None, 300)
    assert found.uncounted == {"Linear": MS}


def test_stages() -> None:
    found = stage_table(SPANS, rows({1: 50 * MS}), RECORD, select(RECORD.iterations), (), None)
    assert figures(found) == {"inference": None}
    assert found.uncounted == {"inference": 50 * MS}
    assert set(found.counters["event"]) == {EVENT}


def test_counts_of_a_collector_that_says_nothing_are_whole() -> None:
    made = counts([(0, 3, MAIN, EVENT, 300)])
    found = attribute(SPANS, made, MODULES, RECORD)
    assert found.counts["scaled"].null_count() == 0
    assert found.uncounted.is_empty()


HELPER = 77
BY_A_HELPER = SPANS.with_columns(
    tid=pl.when(pl.col("span") == 4).then(HELPER).otherwise("tid").cast(SPANS.schema["tid"]),
    parent=pl.when(pl.col("span") != 4).then("parent"),
)


def called_by_a_helper(*further: tuple[int, int, int, str, int], spans: pl.DataFrame = BY_A_HELPER) -> Attribution:
    """Layer b was called on another thread; what is counted of the one that waited, and the further rows."""
    waited = [(0, span, MAIN, EVENT, value) for span, value in COUNTED.items()]
    return attribute(spans, counts([*waited, *further]), MODULES, RECORD)


def test_counts_of_those_that_waited_are_not_those_of_a_layer_whose_caller_was_not_counted() -> None:
    made = called_by_a_helper()
    found = layer_table(MODULES, made, (), None)
    assert figures(found) == {own(ROOT): 90, "a": 300, "b": None, "c": 300, UNATTRIBUTED: 10, WHOLE: None}
    assert found.uncounted_callers == {"b": 30 * MS, WHOLE: 30 * MS}
    of_types = layer_type_table(MODULES, made, (), None)
    assert (figures(of_types)["Linear"], figures(of_types)["ReLU"]) == (None, 300)
    assert of_types.uncounted_callers == {"Linear": 30 * MS}


def test_the_inference_lacks_what_its_layers_lack() -> None:
    waited = counts([(0, span, MAIN, EVENT, value) for span, value in COUNTED.items()])
    loaded = LoadedPass(RECORD, BY_A_HELPER, waited, called_by_a_helper())
    no_traffic = uncore.by_owner(BY_A_HELPER, MODULES, empty("series"), (0,))
    found = figure_tables(loaded, MODULES, (), None, Further(no_traffic, None, None)).stages
    assert figures(found) == {"inference": None}
    assert found.uncounted_callers == {"inference": 30 * MS}


def test_a_caller_that_was_counted_is_no_reason() -> None:
    made = called_by_a_helper((0, 4, HELPER, EVENT, 5), (0, 2, HELPER, EVENT, 5), (0, 1, HELPER, EVENT, 5))
    found = layer_table(MODULES, made, (), None)
    assert figures(found) == {own(ROOT): 90, "a": 300, "b": 305, "c": 300, UNATTRIBUTED: 10, WHOLE: 1005}
    assert found.uncounted_callers == {}


def test_a_short_call_hides_nothing_of_the_whole() -> None:
    short = BY_A_HELPER.with_columns(end_ns=pl.when(pl.col("span") == 4).then(31 * MS).otherwise("end_ns"))
    assert layer_table(MODULES, called_by_a_helper(spans=short), (), None).uncounted_callers == {"b": MS}


def test_spans_of_which_nothing_was_counted_have_no_caller_to_miss() -> None:
    assert attribute(BY_A_HELPER, counts([]), MODULES, RECORD).uncounted_callers.is_empty()
    of_process = counts([(0, span, WHOLE_PROCESS_TID, EVENT, 1) for span in COUNTED])
    assert attribute(BY_A_HELPER, of_process, MODULES, RECORD).uncounted_callers.is_empty()
