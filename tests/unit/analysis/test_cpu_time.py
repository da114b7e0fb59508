"""CPU time accounted for: with its error, and with what is behind what is missing."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.attribution import attribute
from hwprof.analysis.cpu_time import (
    COARSE,
    NEW_THREADS,
    NOT_YET,
    SWITCHES,
    UNKNOWN,
    WHOSE,
    CpuTime,
    Uncounted,
    cpu_time,
    uncounted,
)
from hwprof.run.process_events import NEW_THREADS_CPU_TIME, PROCESS_CPU_ERROR, PROCESS_CPU_TIME, WHOLE_PROCESS_TID
from tests.support.small_tables import MAIN, WORKER, counts, layers, record, spans

SPANS = spans(
    [
        (0, None, 0, "iteration", "iteration 0", 0, 1000),
        (1, 0, 0, "stage", "inference", 100, 900),
        (2, 1, 0, "layer", "a", 200, 700),
        (3, None, 1, "iteration", "iteration 1", 2000, 3000),  # only timed: what it took is in no share
    ]
)
MODEL = layers([("a", "Conv2d", True)])
COUNTED = record([(0, False, 0, True), (1, False, 0, False)], [["task-clock", "context-switches"]])
COUNTS: list[tuple[int, int, int, str, int]] = [
    (0, 0, MAIN, "task-clock", 1_000_000),
    (0, 0, WORKER, "task-clock", 900_000),
    (0, 1, MAIN, "task-clock", 800_000),
    (0, 2, MAIN, "task-clock", 500_000),
    (1, 3, MAIN, "task-clock", 10_000_000),
]


OWN_THREAD = spans(
    [
        (0, None, 0, "iteration", "iteration 0", 0, 1_000_000),
        (1, 0, 0, "stage", "inference", 100_000, 900_000),
        (2, 1, 0, "layer", "a", 200_000, 300_000),
        (3, None, 0, "layer", "b", 400_000, 800_000),
    ]
).with_columns(tid=pl.when(path="b").then(pl.lit(WORKER, pl.Int32)).otherwise("tid"))
BOTH = layers([("a", "Conv2d", True), ("b", "Conv2d", True)])

Row = tuple[int, int, int, str, int]


def of_process(process_ns: int, error_ns: int = 10_000, new_ns: int = 0, switches: int = 0) -> list[Row]:
    values = {PROCESS_CPU_TIME: process_ns, PROCESS_CPU_ERROR: error_ns, NEW_THREADS_CPU_TIME: new_ns}
    rows = [(0, 0, WHOLE_PROCESS_TID, event, ns) for event, ns in values.items()]
    return [*COUNTS, *rows, (0, 0, MAIN, "context-switches", switches)]


def accounted(rows: list[Row]) -> CpuTime:
    values = counts(rows)
    found = cpu_time(SPANS, values, attribute(SPANS, values, MODEL, COUNTED), None)
    assert found is not None
    return found


def missed(rows: list[Row]) -> Uncounted | None:
    return uncounted(SPANS, counts(rows), COUNTED.iterations)


def test_of_a_layer_whose_thread_was_not_counted_no_share_is_made_up() -> None:
    """Its thread is new to the counters: what they have of the layer, and of the inference with it, is not its time."""
    rows = [
        (0, 0, WHOLE_PROCESS_TID, PROCESS_CPU_TIME, 900_000),
        (0, 0, WHOLE_PROCESS_TID, PROCESS_CPU_ERROR, 10_000),
        (0, 0, MAIN, "task-clock", 520_000),
        (0, 1, MAIN, "task-clock", 500_000),
        (0, 2, MAIN, "task-clock", 100_000),
        (0, 3, MAIN, "task-clock", 50_000),
    ]
    values = counts(rows)
    found = cpu_time(OWN_THREAD, values, attribute(OWN_THREAD, values, BOTH, COUNTED), None)
    assert found is not None
    assert (found.layers, found.rest_of_inference, found.rest_of_iteration) == (None, None, None)
    assert found.unknown == NOT_YET
    assert found.accounted_for == pytest.approx(520 / 900), "of what was counted, all the same"


def test_beside_layers_of_threads_of_their_own_what_is_between_them_is_not_nothing() -> None:
    rows = [
        *[
            (0, 0, WHOLE_PROCESS_TID, event, ns)
            for event, ns in ((PROCESS_CPU_TIME, 900_000), (PROCESS_CPU_ERROR, 100))
        ],
        *[(0, span, MAIN, "task-clock", ns) for span, ns in ((0, 520_000), (1, 500_000), (2, 100_000), (3, 0))],
        *[(0, span, WORKER, "task-clock", ns) for span, ns in ((0, 380_000), (1, 380_000), (2, 0), (3, 350_000))],
    ]
    values = counts(rows)
    found = cpu_time(OWN_THREAD, values, attribute(OWN_THREAD, values, BOTH, COUNTED), None)
    assert found is not None
    assert found.layers == pytest.approx(450 / 900)
    assert (found.rest_of_inference, found.unknown) == (None, WHOSE)
    assert found.rest_of_iteration == pytest.approx(20 / 900)


def test_an_iteration_of_a_millisecond_is_accounted_for_within_its_error() -> None:
    """Two threads: it was a dash, or twice of what there was, as long as the account lagged by a tick."""
    found = accounted(of_process(1_910_000, error_ns=20_000))
    assert found.resolved
    assert found.accounted_for == pytest.approx(1900 / 1910)
    assert found.error == pytest.approx(1900 / 1890 - 1900 / 1910, rel=1e-6), "as far as it may be more"
    assert found.layers is not None and found.rest_of_inference is not None and found.rest_of_iteration is not None
    assert found.layers + found.rest_of_inference + found.rest_of_iteration == pytest.approx(found.accounted_for)
    assert missed(of_process(1_910_000, error_ns=20_000)) is None


def test_more_than_there_was_is_the_error_of_the_kernels_clocks() -> None:
    """Time that a hypervisor took is in the one of them, and not in the other."""
    found = accounted(of_process(1_880_000, error_ns=2_000))
    assert found.accounted_for == pytest.approx(1900 / 1880)
    assert found.error == pytest.approx(1900 / 1880 - 1)


@pytest.mark.parametrize(("share", "resolved"), [(COARSE * 0.99, True), (COARSE * 1.01, False), (1.5, False)])
def test_an_iteration_in_which_counters_were_read_for_much_of_the_time_has_no_share(
    share: float, resolved: bool
) -> None:
    found = accounted(of_process(2_000_000, error_ns=int(2_000_000 * share)))
    assert found.resolved is resolved
    assert (found.error is None) == (share >= 1)
    assert (missed(of_process(9_000_000, error_ns=int(9_000_000 * share))) is None) is not resolved


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (of_process(19_000_000, new_ns=17_000_000), Uncounted(0.9, NEW_THREADS)),
        (of_process(2_000_000, switches=20), Uncounted(0.05, SWITCHES)),
        (of_process(2_000_000, switches=5), Uncounted(0.05, UNKNOWN)),
        (of_process(2_000_000, error_ns=60_000), None),  # 100,000 of 2 million, known to 3%, and 2% are not told
        (of_process(1_800_000), None),
        (of_process(1_937_000), None),
    ],
)
def test_what_was_not_counted_has_its_size_and_its_cause(rows: list[Row], expected: Uncounted | None) -> None:
    found = missed(rows)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.cause == expected.cause
        assert found.share == pytest.approx(expected.share)
        assert found.share == pytest.approx(1 - accounted(rows).accounted_for), "one figure, wherever it stands"


def test_runs_of_before_do_not_tell_what_was_not_counted() -> None:
    rows = [row for row in of_process(19_000_000) if row[3] != PROCESS_CPU_ERROR]
    assert missed(rows) is None
    found = accounted(rows)
    assert (found.error, found.resolved) == (None, False), "by its ticks"
