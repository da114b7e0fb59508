from __future__ import annotations

from typing import Any

import polars as pl

from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.run.schema import WHOLE_PROCESS_TID, conform
from hwprof.trace.slice_annotations import Count, SliceAnnotations, by_span, running_shares

MAIN, WORKER, OTHER = 10, 11, 12
PASS = PassRecord(
    name="measure",
    main_tid=MAIN,
    event_sets=[["cycles", "instructions"]],
    iterations=[IterationRecord(2, False, 0, True)],
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


def count(event: str, value: int, tid: int = MAIN, running_ns: int = 100, provenance: str = "measured") -> Count:
    return Count(tid, event, value, 100, running_ns, provenance)


def of(counts: list[Count], derived: dict[str, float] | None = None, **span: Any) -> dict[str, Any]:
    threads = conform("threads", pl.DataFrame({"pass": ["measure"], "pid": [10], "tid": [MAIN], "role": ["main"]}))
    layers = conform("layers", pl.DataFrame([LAYER]))
    row = {
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
    calls = conform("layer_calls", pl.DataFrame(CALLS))
    return SliceAnnotations(PASS, threads, layers, calls).of(row | span, counts, derived or {})


def test_counts_are_summed_and_kept_apart_by_role_and_worker() -> None:
    facts = of([count("cycles", 10), count("cycles", 20, WORKER), count("cycles", 30, OTHER)])
    assert facts["counts"] == {"cycles": 60}
    assert facts["main"] == {"cycles": 10}
    assert facts["workers"] == {"cycles": 50}
    assert facts["worker"] == {"cycles": {WORKER: 20, OTHER: 30}}
    assert facts["provenance"] == {"cycles": "measured"}
    assert "running_share" not in facts


def test_one_worker_is_the_workers() -> None:
    assert "worker" not in of([count("cycles", 10), count("cycles", 20, WORKER)])


def test_the_process_is_no_thread() -> None:
    facts = of([count("context-switches", 4, WHOLE_PROCESS_TID)])
    assert facts["counts"] == {"context-switches": 4}
    assert "main" not in facts and "workers" not in facts


def test_running_share_is_told_where_the_kernel_multiplexed() -> None:
    facts = of([count("cycles", 10, running_ns=50), count("cycles", 10, WORKER), count("instructions", 5)])
    assert facts["running_share"] == {"cycles": 0.75}


def test_what_follows_is_told_where_something_does() -> None:
    assert of([], derived={"CPI": 1.5})["derived"] == {"CPI": 1.5}
    assert "derived" not in of([count("cycles", 5)])


def test_shapes_are_those_of_the_call() -> None:
    assert (of([])["layer"]["input_shapes"], of([], call=1)["layer"]["input_shapes"]) == ("1x3x8x8", "1x3x4x4")
    assert of([], call=2)["layer"]["input_shapes"] is None


def test_layer_columns_and_iteration() -> None:
    assert of([])["layer"]["type"] == "Conv2d"
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
    assert by_span(conform("counts", pl.DataFrame([row]))) == {3: [Count(1, "x", 2, 4, 4, "measured")]}
