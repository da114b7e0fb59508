from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from hwprof.run.manifest import Disturbance, IterationRecord, PassRecord
from hwprof.run.process_events import WHOLE_PROCESS_TID
from hwprof.run.schema import conform
from hwprof.trace.analysed import NOTHING, Analysed
from hwprof.trace.annotations import SharedAnnotations
from hwprof.trace.iteration_slices import IterationSlices
from hwprof.trace.slice_annotations import OWN, Count, SliceAnnotations, counts_by_span, running_shares
from hwprof.trace.slice_metrics import PLAIN, MetricOrigins

MAIN, WORKER, OTHER = 10, 11, 12
PASS = PassRecord(
    name="measure",
    main_tid=MAIN,
    event_sets=[["cycles", "instructions"]],
    iterations=[
        IterationRecord(0, True, 0, False),
        IterationRecord(2, False, 0, True, disturbance=Disturbance(10_000_000, 2, 8_000_000, None)),
        IterationRecord(3, False, 0, True, disturbance=Disturbance(10_000_000, 2, 0, None)),
        IterationRecord(4, True, None, False, alone_for="onednn_verbose"),
        IterationRecord(6, True, None, False, bare=True),
    ],
)
LAYER = {
    "order": 0,
    "path": "model.0",
    "type": "Conv2d",
    "leaf": True,
    "depth": 1,
    "parameters": 9,
    "macs": 900,
    "calls": 2,
    "more_shapes": 1,
}
CALLS = [
    {"path": "model.0", "call": 0, "input_shapes": "1x3x8x8", "output_shapes": "1x4x6x6", "macs": 500, "bytes": 9},
    {"path": "model.0", "call": 1, "input_shapes": "1x3x4x4", "output_shapes": "1x4x2x2", "macs": 400, "bytes": 8},
]
ANALYSED = Analysed(
    frozenset({"measure"}),
    {
        ("layer", "model.0"): {
            "time_budget": SharedAnnotations({"compute": 0.9}),
            "roofline": SharedAnnotations({"bound": "compute"}),
        }
    },
)


def count(event: str, value: int, tid: int = MAIN, running_ns: int = 100, provenance: str = "measured") -> Count:
    return Count(tid, event, value, 100, running_ns, provenance)


def slices_of(origins: MetricOrigins = PLAIN, analysed: Analysed = NOTHING) -> SliceAnnotations:
    threads = conform("threads", pl.DataFrame({"pass": ["measure"], "pid": [10], "tid": [MAIN], "role": ["main"]}))
    layers, calls = conform("layers", pl.DataFrame([LAYER])), conform("layer_calls", pl.DataFrame(CALLS))
    return SliceAnnotations(PASS, threads, layers, calls, origins=origins, analysed=analysed)


SPAN = {
    "span": 7,
    "iteration": 2,
    "warmup": False,
    "kind": "layer",
    "path": "model.0",
    "begin_ns": 1_000,
    "end_ns": 1_100,
    "input_shapes": None,
    "call": 0,
}


def of(
    counts: list[Count], derived: dict[str, float] | None = None, origins: MetricOrigins = PLAIN, **span: Any
) -> dict[str, Any]:
    return slices_of(origins).of(SPAN | span, counts, derived or {})


def test_counts_are_summed_and_kept_apart_by_role_and_worker() -> None:
    facts = of([count("cycles", 10), count("cycles", 20, WORKER), count("cycles", 30, OTHER)])
    assert facts["counts"] == {"cycles": 60}
    assert facts["main"] == {"cycles": 10}
    assert facts["workers"] == {"cycles": 50}
    assert facts["worker"] == {"cycles": {f"tid_{WORKER}": 20, f"tid_{OTHER}": 30}}
    assert facts["provenance"] == {"cycles": "measured"}
    assert "running_share" not in facts


def test_one_worker_is_the_workers() -> None:
    assert "worker" not in of([count("cycles", 10), count("cycles", 20, WORKER)])


def test_the_process_is_no_thread() -> None:
    facts = of([count("context-switches", 4, WHOLE_PROCESS_TID)])
    assert facts["counts"] == {"context_switches": 4}
    assert "main" not in facts and "workers" not in facts


def test_running_share_is_told_where_the_kernel_multiplexed() -> None:
    facts = of([count("cycles", 10, running_ns=50), count("cycles", 10, WORKER), count("instructions", 5)])
    assert facts["running_share"] == {"cycles": 0.75}


def test_metrics_go_by_their_names_and_say_where_they_come_from() -> None:
    """What is made of another pass's counts names that pass; a metric does not take the place of another argument."""
    origins = MetricOrigins({"gflops": "modelled", "cpi": "counts of pass exact"}, frozenset({"cpi"}), "exact")
    facts = of([], {"cpi": 1.5, "gflops": 3.0, "span": 9.0}, origins)
    assert (facts["cpi"], facts["gflops"], facts["span"], facts["span_2"]) == (1.5, 3.0, 7, 9.0)
    assert facts["counts_pass"] == "exact"
    assert facts["metric_provenance"] == {"gflops": "modelled", "cpi": "counts of pass exact"}
    assert "counts_pass" not in of([], {"gflops": 3.0}, origins)
    assert "metric_provenance" not in of([], {"cpi": 1.5})


def test_no_argument_of_ours_is_free_for_a_metric() -> None:
    counted = [count("cycles", 10, running_ns=50), count("cycles", 20, WORKER), count("cycles", 30, OTHER)]
    origins = MetricOrigins({"cpi": "counts of pass exact"}, frozenset({"cpi"}), "exact")
    layer = slices_of(origins, ANALYSED).of(SPAN | {"input_shapes": "1x3"}, counted, {"cpi": 1.5})
    iteration = of([], kind="iteration", path="iteration 2")
    assert (layer.keys() | iteration.keys()) - {"cpi"} == OWN


def test_what_the_analysis_knows_of_a_layer_is_of_measured_iterations_and_its_own_passes() -> None:
    facts = slices_of(analysed=ANALYSED).of(SPAN, [], {})
    assert (facts["time_budget"], facts["roofline"]) == ({"compute": 0.9}, {"bound": "compute"})
    for other in ({"warmup": True}, {"path": "model.1"}, {"kind": "stage"}):
        assert "time_budget" not in slices_of(analysed=ANALYSED).of(SPAN | other, [], {})
    of_another = ANALYSED._replace(passes=frozenset({"trace"}))
    assert "time_budget" not in slices_of(analysed=of_another).of(SPAN, [], {})


@pytest.mark.parametrize(
    ("number", "name", "disturbed"),
    [
        (0, "iteration 0 (warm-up)", None),
        (2, "iteration 2 (disturbed)", True),
        (3, "iteration 3", False),
        (4, "iteration 4 (onednn_verbose only)", None),
        (5, "iteration 5", None),
        (6, "iteration 6 (layers not watched)", None),
    ],
)
def test_an_iteration_is_called_by_what_it_is_good_for(number: int, name: str, disturbed: bool | None) -> None:
    span = SPAN | {"kind": "iteration", "path": f"iteration {number}", "iteration": number}
    assert slices_of().name(span) == name
    assert slices_of().of(span, [], {})["disturbed"] is disturbed
    assert of([], iteration=number)["disturbed"] is disturbed, "as of what is in it"


def test_what_others_did_to_an_iteration_is_told_as_far_as_it_is_known() -> None:
    facts = of([], kind="iteration", path="iteration 2")
    assert (facts["preemptions"], facts["waited_ms"], facts["stolen_ms"]) == (2, 8.0, None)
    assert facts["left_out_of_medians"] is False, "too few others remain"
    assert "preemptions" not in of([], kind="iteration", path="iteration 0", iteration=0)


def test_shapes_are_those_of_the_call() -> None:
    assert (of([])["layer"]["input_shapes"], of([], call=1)["layer"]["input_shapes"]) == ("1x3x8x8", "1x3x4x4")
    assert of([], call=2)["layer"]["input_shapes"] is None


def test_layer_columns_and_iteration() -> None:
    assert of([])["layer"]["type"] == "Conv2d"
    assert slices_of().name(SPAN | {"path": ""}) == "(root)"
    assert "layer" not in of([], path="elsewhere")
    facts = of([], kind="iteration", path="iteration 2")
    assert facts["layers_counted"] is True
    assert facts["events"] == ["cycles", "instructions"]


def test_mixed_provenance_is_told() -> None:
    facts = of([count("cycles", 1), count("cycles", 1, WORKER, provenance="instrumented")])
    assert facts["provenance"] == {"cycles": "instrumented, measured"}


def test_shares_and_grouping() -> None:
    assert running_shares([Count(1, "x", 1, 0, 0, "measured")]) == {}
    row = {"span": 3, "tid": 1, "event": "x", "value": 2, "enabled_ns": 4, "running_ns": 4, "provenance": "measured"}
    counts = counts_by_span(conform("counts", pl.DataFrame([row])))
    assert counts.of(3) == [Count(1, "x", 2, 4, 4, "measured")] and not counts.of(2)


def test_an_event_set_that_a_damaged_run_names_is_none() -> None:
    found = IterationSlices([IterationRecord(0, False, 7, True)], [["cycles"]])
    assert found.annotations(0)["events"] is None
