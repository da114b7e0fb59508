"""The metrics of single slices."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from hwprof.analysis.metrics import definitions
from hwprof.run.manifest import MetricDefinition
from hwprof.run.process_events import COUNTED_WINDOW, WHOLE_PROCESS_TID
from hwprof.run.schema import conform
from hwprof.trace.slice_metrics import InstrumentedCounts, MetricOrigins, SliceMetrics
from tests.support.synthetic_processor import Processor, synthetic_machine

MAIN, WORKER = 10, 11
CALLS = [
    {"path": "model.0", "call": 0, "macs": 500, "bytes": 1000},
    {"path": "model.0", "call": 1, "macs": 400, "bytes": 50},
]
NAMES = ("cpi", "cpus_used", "gflops", "gbytes", "worker_instructions", "balance")
METRICS = tuple(metric for metric in definitions(None, synthetic_machine()) if metric.name in NAMES)


def count(event: str, value: int, tid: int = MAIN, running_ns: int = 100, span: int = 7) -> dict[str, Any]:
    return {
        "iteration": 2, "span": span, "tid": tid, "event": event, "value": value,
        "enabled_ns": 100, "running_ns": running_ns, "provenance": "measured",
    }  # fmt: skip


def of(derived: pl.DataFrame, span: int) -> dict[str, float]:
    """What a span has."""
    rows = derived.filter(pl.col("span") == span).drop("span").to_dicts()
    return {name: value for row in rows for name, value in row.items() if value is not None}


def derive(*counts: dict[str, Any], metrics: tuple[MetricDefinition, ...] = METRICS, **span: Any) -> dict[str, float]:
    row = {"span": 7, "tid": MAIN, "kind": "layer", "path": "model.0", "call": 0, "begin_ns": 1_000, "end_ns": 1_100}
    slice_metrics = SliceMetrics(metrics, conform("layer_calls", pl.DataFrame(CALLS)), 2)
    found = slice_metrics.derive(
        conform("spans", pl.DataFrame([row | span])), conform("counts", pl.DataFrame(list(counts) or None))
    )
    return of(found, 7)


def test_cpi_of_scaled_values() -> None:
    assert derive(count("cycles", 300, running_ns=50), count("instructions", 400))["cpi"] == pytest.approx(1.5)


@pytest.mark.parametrize(
    "counts",
    [
        [],
        [count("cycles", 5)],
        [count("cycles", 5), count("instructions", 0)],
        [count("cycles", 5, running_ns=0), count("instructions", 5)],
    ],
)
def test_no_cpi_without_both_operands(counts: list[dict[str, Any]]) -> None:
    assert "cpi" not in derive(*counts)


def test_the_modelled_rates_are_the_call_s_own() -> None:
    assert derive() == {"gflops": 2 * 500 / 100, "gbytes": 10.0}
    assert derive(call=1) == {"gflops": 2 * 400 / 100, "gbytes": 0.5}
    assert derive(call=2) == {}, "nothing is known of a third call"
    assert derive(end_ns=1_000) == {}
    origins = SliceMetrics(METRICS, conform("layer_calls", pl.DataFrame(CALLS)), 2).origins
    assert origins == MetricOrigins({"gflops": "modelled", "gbytes": "modelled"})


def test_cpus_are_the_cpu_time_of_the_window_that_was_counted() -> None:
    busy = (count("task-clock", 49), count("task-clock", 41, WORKER))
    assert derive(*busy, count(COUNTED_WINDOW, 50, WHOLE_PROCESS_TID))["cpus_used"] == pytest.approx(90 / 50)
    assert "cpus_used" not in derive(*busy)


def test_threads_are_told_apart_by_who_opened_the_span() -> None:
    found = derive(count("instructions", 30), count("instructions", 10, WORKER))
    assert found["worker_instructions"] == pytest.approx(25)
    assert derive(count("instructions", 30), count("instructions", 10, WORKER), tid=WORKER)["worker_instructions"] == 75


def test_stages_and_operators_that_were_counted_have_metrics_others_have_none() -> None:
    counts = (count("cycles", 6), count("instructions", 3))
    assert derive(*counts, kind="stage", path="inference", call=None) == {"cpi": 2.0}
    assert derive(*counts, kind="op", path="aten::conv2d", call=None) == {"cpi": 2.0}
    assert derive(kind="op", path="aten::conv2d", call=None) == {}


@pytest.mark.parametrize("name", ["amd-zen4", "intel-sapphire-rapids", "arm-neoverse-v2"])
def test_every_metric_of_a_processor_is_on_a_slice_that_counted_all_events(name: str) -> None:
    known = Processor(name)
    counts = [count(event, 100 + number) for number, event in enumerate(known.events)]
    found = derive(*counts, count(COUNTED_WINDOW, 90, WHOLE_PROCESS_TID), metrics=known.metrics)
    assert set(found) == {metric.name for metric in known.metrics}


def test_counts_of_the_same_call_in_an_instrumented_pass_are_joined_with_this_ones_time() -> None:
    """The second call of the layer has its own count, and it is known whose it is."""
    cpi = MetricDefinition(
        name="cpi", title="CPI", unit="1", digits=2, formula='2.5 * "time" / "followed.instructions"', meaning=""
    )
    other = pl.DataFrame({"path": ["model.0"] * 2, "call": [0, 1], "followed.instructions": [50.0, 500.0]})
    slice_metrics = SliceMetrics(
        (cpi,), conform("layer_calls", pl.DataFrame(CALLS)), 2,
        InstrumentedCounts("followed", other.cast({"call": pl.Int32})),
    )  # fmt: skip
    spans = [
        {"span": span, "tid": MAIN, "kind": "layer", "path": path, "call": call, "begin_ns": 1_000, "end_ns": 1_100}
        for span, (path, call) in enumerate([("model.0", 0), ("model.0", 1), ("model.1", 0)])
    ]
    found = slice_metrics.derive(conform("spans", pl.DataFrame(spans)), conform("counts", pl.DataFrame()))
    assert of(found, 0) == {"cpi": 2.5 * 100 / 50}
    assert of(found, 1) == {"cpi": 2.5 * 100 / 500}
    assert slice_metrics.origins == MetricOrigins({"cpi": "counts of pass followed"}, frozenset({"cpi"}), "followed")
    assert of(found, 2) == {}


def test_of_a_call_in_two_parts_none_has_all_of_its_work() -> None:
    row = {"tid": MAIN, "kind": "layer", "path": "model.0", "call": 0, "iteration": 2}
    spans = [row | {"span": span, "begin_ns": 1000 * span, "end_ns": 1000 * span + 100} for span in (7, 8)]
    spans.append(row | {"span": 9, "begin_ns": 9000, "end_ns": 9100, "call": 1})
    slice_metrics = SliceMetrics(METRICS, conform("layer_calls", pl.DataFrame(CALLS)), 2)
    found = slice_metrics.derive(conform("spans", pl.DataFrame(spans)), conform("counts", pl.DataFrame(None)))
    assert [of(found, span) for span in (7, 8, 9)] == [{}, {}, {"gflops": 8.0, "gbytes": 0.5}]
