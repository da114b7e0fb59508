from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from hwprof.run.manifest import Disturbance, IterationRecord, PassRecord
from hwprof.run.schema import conform
from hwprof.trace.analysed import NOTHING, Analysed
from hwprof.trace.annotations import SharedAnnotations
from hwprof.trace.iteration_slices import IterationSlices
from hwprof.trace.slice_annotations import COLUMNS, OWN, SliceAnnotations
from tests.support import trace_decoding as decoding

MAIN = 10
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


def slices_of(analysed: Analysed = NOTHING) -> SliceAnnotations:
    threads = conform("threads", pl.DataFrame({"pass": ["measure"], "pid": [10], "tid": [MAIN], "role": ["main"]}))
    layers, calls = conform("layers", pl.DataFrame([LAYER])), conform("layer_calls", pl.DataFrame(CALLS))
    return SliceAnnotations(PASS, threads, layers, calls, analysed=analysed)


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


def of(**span: Any) -> dict[str, Any]:
    return slices_of().of(SPAN | span)


def test_no_argument_of_ours_is_free_for_a_metric() -> None:
    layer = slices_of(ANALYSED).of(SPAN | {"input_shapes": "1x3"})
    iteration = of(kind="iteration", path="iteration 2")
    assert layer.keys() | iteration.keys() == OWN


@pytest.mark.parametrize(
    "span",
    [
        {},
        {"input_shapes": "1x3"},
        {"warmup": True},
        {"call": 1},
        {"path": "elsewhere"},
        {"kind": "iteration", "path": "iteration 2"},
        {"kind": "iteration", "path": "iteration 3", "iteration": 3},
    ],
)
def test_what_slices_share_is_encoded_once_and_for_each(span: dict[str, Any]) -> None:
    _, sequence = decoding.sequence()
    slices, encode = slices_of(ANALYSED), sequence.annotations.encode
    encoded = slices.encoder(sequence)
    for number in range(2):
        for other in (SPAN, SPAN | span):
            row = other | {"span": number}
            columns = tuple(row[name] for name in COLUMNS)
            assert encoded(columns) == sequence.beginning(slices.name(row), str(row["kind"])) + encode(slices.of(row))


def test_what_the_analysis_knows_of_a_layer_is_of_measured_iterations_and_its_own_passes() -> None:
    facts = slices_of(ANALYSED).of(SPAN)
    assert (facts["time_budget"], facts["roofline"]) == ({"compute": 0.9}, {"bound": "compute"})
    for other in ({"warmup": True}, {"path": "model.1"}, {"kind": "stage"}):
        assert "time_budget" not in slices_of(ANALYSED).of(SPAN | other)
    of_another = ANALYSED._replace(passes=frozenset({"trace"}))
    assert "time_budget" not in slices_of(analysed=of_another).of(SPAN)


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
    assert slices_of().of(span)["disturbed"] is disturbed
    assert of(iteration=number)["disturbed"] is disturbed, "as of what is in it"


def test_what_others_did_to_an_iteration_is_told_as_far_as_it_is_known() -> None:
    facts = of(kind="iteration", path="iteration 2")
    assert (facts["preemptions"], facts["waited_ms"], facts["stolen_ms"]) == (2, 8.0, None)
    assert facts["left_out_of_medians"] is False, "too few others remain"
    assert "preemptions" not in of(kind="iteration", path="iteration 0", iteration=0)


def test_shapes_are_those_of_the_call() -> None:
    assert (of()["layer"]["input_shapes"], of(call=1)["layer"]["input_shapes"]) == ("1x3x8x8", "1x3x4x4")
    assert of(call=2)["layer"]["input_shapes"] is None


def test_layer_columns_and_iteration() -> None:
    assert of()["layer"]["type"] == "Conv2d"
    assert slices_of().name(SPAN | {"path": ""}) == "(root)"
    assert "layer" not in of(path="elsewhere")
    facts = of(kind="iteration", path="iteration 2")
    assert facts["layers_counted"] is True
    assert facts["events"] == ["cycles", "instructions"]


def test_an_event_set_that_a_damaged_run_names_is_none() -> None:
    found = IterationSlices([IterationRecord(0, False, 7, True)], [["cycles"]])
    assert found.annotations(0)["events"] is None
