"""What a report says about itself: observer effect, closure, reasons of what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
import pytest

from hwprof.analysis.attribution import TIMES_SCHEMA, attribute
from hwprof.analysis.cpu_time import cpu_time
from hwprof.analysis.metrics import definitions
from hwprof.analysis.missing import metric_missing, operand_missing
from hwprof.analysis.overhead import (
    counting_overhead,
    pass_overhead,
    spread,
    watching_overhead,
    why_no_watching_overhead,
)
from hwprof.analysis.owners import ROOT, UNATTRIBUTED, WHOLE
from hwprof.analysis.reasons import Missing
from hwprof.run.manifest import CollectorRecord, Disturbance, EventInfo, IterationRecord, PassRecord
from hwprof.run.process_events import WHOLE_PROCESS_TID
from hwprof.run.roles import Role
from tests.support.small_tables import MAIN, WORKER, Example, counts, layers, record, spans
from tests.support.synthetic_processor import synthetic_machine

MACHINE = synthetic_machine()


def test_counting_iterations_against_timing_ones() -> None:
    example = Example()
    found = counting_overhead(attribute(example.spans, example.counts, example.layers, example.record))
    assert found.select("owner", "base_ns", "observed_ns", "base_iterations", "observed_iterations").rows() == [
        ("a", 31.0, 32.5, 1, 2),
        ("b", 30.0, 30.0, 1, 2),
        (UNATTRIBUTED, 40.0, 40.0, 1, 2),
        (WHOLE, 101.0, 102.5, 1, 2),
    ]
    assert found["ratio"].to_list() == pytest.approx([32.5 / 31, 1.0, 1.0, 102.5 / 101])
    low, middle, high = spread(found) or (0, 0, 0)
    assert (low, middle, high) == pytest.approx((1 + 1.5 / 31 / 4, 1 + 1.5 / 31 / 2, 1 + 1.5 / 31 * 3 / 4))


def test_a_single_layer_has_no_quartiles() -> None:
    example = Example()
    ratios = counting_overhead(attribute(example.spans, example.counts, example.layers, example.record))
    assert spread(ratios.filter(pl.col("owner") != "b")) is None


@pytest.mark.parametrize(
    ("base", "observed", "distinguishable"),
    [
        ([100, 101, 99], [119, 120, 121], True),
        ([100, 102, 98], [110, 112], False),  # two are alike by luck
        ([100, 102, 98], [102, 104], False),
        ([100, 102, 98], [3], False),  # one tells nothing of its spread
        ([100], [300, 301], False),
        ([100, 102, 98], [50, 51], False),  # measuring makes nothing faster
        ([10, 10, 10, 10], [30, 10, 10, 30, 30, 10, 10, 30, 10, 30, 30, 30, 10, 30], False),  # two amounts of work
        ([10, 10, 10, 10, 30, 30, 30], [30, 30, 30], False),
        ([10, 10, 10, 10, 30], [30, 30, 30], True),
    ],
)
def test_what_lies_within_the_spread_is_no_finding(base: list[int], observed: list[int], distinguishable: bool) -> None:
    example = Example()
    found = attribute(example.spans, example.counts, example.layers, example.record)
    times = [(WHOLE, number, number >= len(base), 1, ns) for number, ns in enumerate([*base, *observed])]
    frame = pl.DataFrame(times, schema=TIMES_SCHEMA, orient="row")
    numbers = tuple(range(len(times)))
    iterations = replace(found.iterations, timed=numbers[: len(base)], counted=numbers[len(base) :])
    ratios = counting_overhead(replace(found, times=frame, iterations=iterations))
    assert ratios["distinguishable"].to_list() == [distinguishable]


def test_an_overheads_error_is_that_of_both_medians() -> None:
    """Median and MAD by hand: 1.2533 x 1.4826 x t x MAD / sqrt(n), t = 2.571 for six values, 2.160 for fourteen."""
    base, observed = [100, 102] * 7, [110, 113] * 3
    found = attribute(Example().spans, Example().counts, Example().layers, Example().record)
    times = [(WHOLE, number, number >= 14, 1, ns) for number, ns in enumerate([*base, *observed])]
    frame = pl.DataFrame(times, schema=TIMES_SCHEMA, orient="row")
    iterations = replace(found.iterations, timed=tuple(range(14)), counted=tuple(range(14, 20)))
    row = counting_overhead(replace(found, times=frame, iterations=iterations)).row(0, named=True)
    sides = [1.2533 * 1.4826 * errors * mad / number**0.5 / median
             for errors, mad, number, median in ((2.179, 1, 14, 101), (2.571, 1.5, 6, 111.5))]  # fmt: skip
    assert row["ratio"] == pytest.approx(111.5 / 101)
    assert row["error"] == pytest.approx(111.5 / 101 * (sides[0] ** 2 + sides[1] ** 2) ** 0.5, rel=1e-3)
    assert row["distinguishable"]


def test_no_effect_is_claimed_where_only_one_kind_of_iteration_ran() -> None:
    example = Example()
    example.record.iterations = [found for found in example.record.iterations if found.layers_counted]
    found = counting_overhead(attribute(example.spans, example.counts, example.layers, example.record))
    assert found.is_empty()
    assert spread(found) is None


def _with_bare(took_ns: Sequence[int], disturbed: Sequence[int] = ()) -> Example:
    """The example with iterations in which no layer was watched; its only timed one takes 101."""
    example = Example()
    rows: list[tuple[int, int | None, int, str, str, int, int]] = []
    for place, ns in enumerate(took_ns):
        index, start, span = 4 + place, 10_000 * (1 + place), 1000 + 2 * place
        rows.append((span, None, index, "iteration", f"iteration {index}", start, start + 2 * ns))
        rows.append((span + 1, span, index, "stage", "inference", start, start + ns))
        found = Disturbance(2 * ns, 5, 2 * ns if place in disturbed else 0, None)
        example.record.iterations.append(IterationRecord(index, True, None, False, bare=True, disturbance=found))
    example.spans = pl.concat([example.spans, spans(rows).with_columns(warmup=True)])
    return example


def test_watching_layers_against_bare_iterations() -> None:
    example = _with_bare([49, 51, 52, 3000], disturbed=[3])
    found = attribute(example.spans, example.counts, example.layers, example.record)
    row = watching_overhead(found, example.record, example.spans).row(0, named=True)
    assert (row["owner"], row["base_ns"], row["base_iterations"]) == (WHOLE, 51.0, 3)
    assert (row["observed_ns"], row["ratio"]) == (101.0, pytest.approx(101 / 51))
    assert why_no_watching_overhead(found, example.record) is None
    alone = attribute(Example().spans, Example().counts, Example().layers, Example().record)
    assert found.times.equals(alone.times) and found.counts.equals(alone.counts), "no figure is of a bare iteration"


def test_bare_iterations_that_others_disturbed_tell_nothing_and_the_report_says_so() -> None:
    example = _with_bare([49, 51], disturbed=[0, 1])
    found = attribute(example.spans, example.counts, example.layers, example.record)
    assert watching_overhead(found, example.record, example.spans).is_empty()
    missing = why_no_watching_overhead(found, example.record)
    assert missing is not None and missing.reason == "all 2 bare iterations were disturbed"


def test_a_pass_without_bare_iterations_says_nothing_of_them() -> None:
    example = Example()
    found = attribute(example.spans, example.counts, example.layers, example.record)
    assert watching_overhead(found, example.record, example.spans).is_empty()
    assert why_no_watching_overhead(found, example.record) is None


def test_another_pass_against_this_one() -> None:
    example, slow = Example(), Example()
    slow.spans = slow.spans.with_columns(begin_ns=slow.spans["begin_ns"] * 2, end_ns=slow.spans["end_ns"] * 2)
    base = attribute(example.spans, example.counts, example.layers, example.record)
    observed = attribute(slow.spans, slow.counts, slow.layers, slow.record)
    ratios = dict(pass_overhead(base, observed).select("owner", "ratio").iter_rows())
    assert ratios["b"] == 2.0
    assert ratios[WHOLE] == 2 * 102 / 101  # the other pass's median iteration against the only timed one


CLOSURE_SPANS = spans(
    [
        (0, None, 0, "iteration", "iteration 0", 0, 1000),
        (1, 0, 0, "stage", "inference", 100, 900),
        (2, 1, 0, "layer", "a", 200, 700),
        (3, 0, 0, "stage", "save", 900, 1000),
    ]
)
CLOSURE_COUNTS = [
    (0, 0, WHOLE_PROCESS_TID, "process-cpu-time", 2000),
    (0, 1, MAIN, "task-clock", 800),
    (0, 1, WORKER, "task-clock", 700),
    (0, 2, MAIN, "task-clock", 500),
    (0, 2, WORKER, "task-clock", 500),
    (0, 3, MAIN, "task-clock", 100),
]
MODEL = layers([("a", "Conv2d", True)])
COUNTED = record([(0, False, 0, True)], [["task-clock"]])


@pytest.mark.parametrize(
    ("own", "everything"), [([(0, 0, MAIN, "task-clock", 1000), (0, 0, WORKER, "task-clock", 960)], 1960), ([], 1600)]
)
def test_cpu_time_from_the_iteration_or_else_from_its_outermost_stages(
    own: list[tuple[int, int, int, str, int]], everything: int
) -> None:
    values = counts([*CLOSURE_COUNTS, *own])
    found = cpu_time(CLOSURE_SPANS, values, attribute(CLOSURE_SPANS, values, MODEL, COUNTED), None)
    assert found is not None
    assert found.process_cpu_time_ns == 2000
    assert found.layers == 1000 / 2000
    assert found.rest_of_inference == 500 / 2000
    assert not found.resolved, "an iteration of 2 microseconds"
    assert found.accounted_for == everything / 2000
    assert found.rest_of_iteration is not None
    assert found.layers + found.rest_of_inference + found.rest_of_iteration == pytest.approx(found.accounted_for)


def test_own_code_is_of_the_layers_as_in_their_table() -> None:
    """As on the fast path of an encoder: all that it does is its blocks' own."""
    block = layers([(ROOT, "Encoder", False), ("a", "TransformerEncoderLayer", False)])
    values = counts(CLOSURE_COUNTS)
    found = cpu_time(CLOSURE_SPANS, values, attribute(CLOSURE_SPANS, values, block, COUNTED), None)
    assert found is not None
    assert (found.layers, found.rest_of_inference, found.accounted_for) == (1000 / 2000, 500 / 2000, 1600 / 2000)


def test_runs_of_before_that_know_no_own_code_are_accounted_for_all_the_same() -> None:
    block = layers([("a", "TransformerEncoderLayer", False)])
    values = counts(CLOSURE_COUNTS)
    found = cpu_time(CLOSURE_SPANS, values, attribute(CLOSURE_SPANS, values, block, COUNTED), None)
    assert found is not None
    assert (found.layers, found.rest_of_inference, found.accounted_for) == (0, 1500 / 2000, 1600 / 2000)


@pytest.mark.parametrize("missing", ["process-cpu-time", "task-clock"])
def test_no_cpu_time_without_both_sides(missing: str) -> None:
    values = counts([row for row in CLOSURE_COUNTS if row[3] != missing])
    assert cpu_time(CLOSURE_SPANS, values, attribute(CLOSURE_SPANS, values, MODEL, COUNTED), None) is None


@pytest.mark.parametrize(
    ("recorded_ns", "tick_ns", "resolved"),
    [(1_000_000, 1_000_000, True), (10_000_000, 10_000_000, False), (None, 4_000_000, False)],
)
def test_what_the_account_resolves_hangs_on_the_measured_machines_tick(
    recorded_ns: int | None, tick_ns: int, resolved: bool
) -> None:
    values = counts([(0, 0, WHOLE_PROCESS_TID, "process-cpu-time", 8_000_000), *CLOSURE_COUNTS[1:]])
    found = cpu_time(CLOSURE_SPANS, values, attribute(CLOSURE_SPANS, values, MODEL, COUNTED), recorded_ns)
    assert found is not None
    assert (found.tick_ns, found.resolved) == (tick_ns, resolved)


def reporting(why: Mapping[str, Mapping[str, str | None]]) -> CollectorRecord:
    detail = {"kind": "counting", "unavailable": why}
    return CollectorRecord(name="perf", role=Role.COUNTER, state="ran", detail=detail)


def passed(**changes: object) -> PassRecord:
    return PassRecord(name="measure", status="completed", **changes)  # type: ignore[arg-type]


def test_the_collectors_own_word_on_an_event_comes_first() -> None:
    why = {"reason": "the hypervisor hides the PMU", "remedy": "run on real hardware"}
    said = reporting({"cycles": why})
    expected = Missing("the hypervisor hides the PMU", "run on real hardware", what="cycles")
    assert operand_missing("cycles", passed(collectors=[said]), MACHINE) == expected


def test_a_collector_that_could_not_run_explains_all_of_its_events() -> None:
    said = CollectorRecord(name="perf", role=Role.COUNTER, state="unavailable", reason="not permitted", remedy="sudo …")
    others = [CollectorRecord(name="rapl", state="unavailable", reason="no energy counters"), said]
    found = operand_missing("task-clock", passed(collectors=others), MACHINE)
    assert found == Missing("not permitted", "sudo …", what="task-clock")


@pytest.mark.parametrize(
    ("operand", "changes", "reason"),
    [
        ("cycles", {}, "no counter collector ran in this pass"),
        ("macs", {}, "no multiply-accumulates are known of these modules"),
        (
            "cycles",
            {
                "collectors": [CollectorRecord(name="perf", role=Role.COUNTER, state="ran")],
                "events": [EventInfo("instructions", "", "1", "hardware")],
                "event_sets": [["instructions"]],
            },
            "the event was not among those counted in this run",
        ),
        ("cycles", {"event_sets": [["cycles"]]}, "no iteration counted the event set that holds it"),
        (
            "cycles",
            {"event_sets": [["cycles"]], "iterations": COUNTED.iterations},
            "its counter never ran: other programs held the processor's counters",
        ),
        (
            "task-clock@workers",
            {"event_sets": [["task-clock"]], "iterations": COUNTED.iterations},
            "no other thread than the calling one was counted",
        ),
    ],
)
def test_reasons(operand: str, changes: dict[str, object], reason: str) -> None:
    assert operand_missing(operand, passed(**changes), MACHINE).reason == reason


def test_a_metric_that_nothing_tells_on_this_machine_says_why() -> None:
    llc = next(metric for metric in definitions(None, MACHINE) if metric.name == "llc_mpki")
    hardware = [EventInfo("instructions", "", "1", "hardware")]
    found = metric_missing(llc, ["instructions"], passed(events=hardware), MACHINE)
    assert found == Missing("no known event of this processor gives it", what="llc_mpki")
    why = {"reason": "the event catalogue does not describe it", "remedy": "add a file"}
    said = reporting({"llc_mpki": why})
    told = metric_missing(llc, ["instructions"], passed(events=hardware, collectors=[said]), MACHINE)
    assert told == Missing(*why.values(), what="llc_mpki")
    pmu = {"reason": "no PMU here", "remedy": None}
    said = reporting({"instructions": pmu})
    assert metric_missing(llc, [], passed(collectors=[said]), MACHINE) == Missing("no PMU here", what="llc_mpki")


@pytest.mark.parametrize(
    ("collectors", "reason", "remedy"),
    [
        ([], "no collector of DRAM traffic ran in this pass", None),
        (
            [
                CollectorRecord(
                    name="uncore", role=Role.DRAM, state="unavailable", reason="not permitted", remedy="sudo …"
                )
            ],
            "not permitted",
            "sudo …",
        ),
        (
            [CollectorRecord(name="uncore", role=Role.DRAM, state="ran", detail={"kind": "dram", "period_ms": 10.0})],
            "nothing runs long enough between the readings, one every 10 ms",
            None,
        ),
        (
            [
                CollectorRecord(
                    name="uncore",
                    role=Role.DRAM,
                    state="ran",
                    detail={"kind": "dram", "events": {"uncore/dram-total": ["unc_m_total_data"]}},
                )
            ],
            "this processor's memory controllers count reads and writes together",
            None,
        ),
    ],
)
def test_the_uncore_collector_speaks_for_its_series(
    collectors: list[CollectorRecord], reason: str, remedy: str | None
) -> None:
    found = operand_missing("uncore/dram-read", passed(collectors=collectors), MACHINE)
    assert found == Missing(reason, remedy, what="uncore/dram-read")


def test_without_any_pass() -> None:
    assert operand_missing("cycles", None, MACHINE).reason == "no measuring pass was completed"


def test_a_metric_names_the_operand_that_it_lacks() -> None:
    cpi = next(metric for metric in definitions(None, MACHINE) if metric.name == "cpi")
    found = metric_missing(cpi, ["cycles"], passed(), MACHINE)
    assert found is not None and found.what == "instructions"
    assert metric_missing(cpi, ["cycles", "instructions"], passed(), MACHINE) is None
