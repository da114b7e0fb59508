"""Operators of runtimes and the layers that they are of: ``fixtures/onnxruntime`` has what ``models/runtimes.several``
became as ONNX, as ONNX Runtime 1.32 executed it, and that one's profile of three calls."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Final

import pytest

from hwprof.errors import HwprofError
from hwprof.workload.runtimes.layer_spans import LayerSpan, Worked, layer_spans
from hwprof.workload.runtimes.operators import Graph, Operator, Place, fused, places
from tests.support.requirements import require_module

RECORDED: Final = Path(__file__).parents[2] / "fixtures" / "onnxruntime"
BEGIN_NS: Final = 1_795_951_780_234_313_848
"""When the recorded profile began."""


def _operator(told: dict[str, Any]) -> Operator:
    scopes = told["scopes"]
    inputs, outputs, origins = (tuple(told[name]) for name in ("inputs", "outputs", "origins"))
    return Operator(told["name"], told["kind"], inputs, outputs, None if scopes is None else tuple(scopes), origins)


def recorded() -> Graph:
    told = json.loads((RECORDED / "exported.json").read_bytes())
    made_of = {name: [_operator(one) for one in those] for name, those in told["made_of"].items()}
    return Graph([_operator(one) for one in told["operators"]], frozenset(told["inputs"]), told["paths"], made_of)


def test_fused_operators_are_of_a_group_and_layout_changes_of_whom_they_serve() -> None:
    require_module("onnx")
    from hwprof.workload.runtimes.onnx_runtime import operators

    executed = operators(RECORDED / "optimised.onnx")
    found = places(recorded(), executed)
    assert set(found) == {one.name for one in executed}
    by_path: dict[str, list[str]] = {}
    for one in executed:
        by_path.setdefault(".".join(found[one.name].paths[-1:]), []).append(one.kind)
    assert {path: sorted(kinds) for path, kinds in by_path.items()} == {
        "stem+bn": ["Conv", "ReorderOutput"],
        "blocks.0.conv+act": ["Conv"],
        "blocks.1.conv+act": ["Conv"],
        "blocks.0": ["Add", "ReorderOutput"],
        "blocks.1": ["Add", "ReorderOutput"],
        "words": ["Gather"],
        "head": ["Gemm"],
        "": ["Add", "ReduceMean", "ReduceMean"],  # the model's own
    }
    assert fused(found) == {
        "stem+bn": ("stem", "bn"),
        "blocks.0.conv+act": ("blocks.0.conv", "blocks.0.act"),
        "blocks.1.conv+act": ("blocks.1.conv", "blocks.1.act"),
    }


def test_a_recorded_profile_has_each_call_s_operators_in_their_order() -> None:
    from hwprof.workload.runtimes.onnx_runtime import operators, runs_of

    require_module("onnx")
    with (RECORDED / "profile.json").open("rb") as file:
        runs = list(runs_of(file, BEGIN_NS))
    told = [event for event in json.loads((RECORDED / "profile.json").read_bytes()) if event["cat"] == "Node"]
    assert len(runs) == 3
    assert [one.operator for one in runs[0]] == [one.name for one in operators(RECORDED / "optimised.onnx")]
    times = [(one.begin_ns - BEGIN_NS, one.end_ns - one.begin_ns) for run in runs for one in run]
    assert times == [(1000 * event["ts"], 1000 * event["dur"]) for event in told]


def test_a_profile_that_was_cut_off_is_no_profile() -> None:
    from hwprof.workload.runtimes.onnx_runtime import runs_of

    whole = (RECORDED / "profile.json").read_bytes()
    with pytest.raises(HwprofError, match="cannot be read"):
        list(runs_of(io.BufferedReader(io.BytesIO(whole[: len(whole) // 2])), 0))


def test_what_an_operator_does_in_a_branch_is_its_own_time() -> None:
    from hwprof.workload.runtimes.onnx_runtime import runs_of

    events = [("inner", 3, 2), ("outer", 2, 5), ("short", 7, 0), ("last", 7, 4)]
    lines = [f'{{"name":"{name}_kernel_time","cat":"Node","ts":{ts},"dur":{dur}}},\n' for name, ts, dur in events]
    text = "[\n" + "".join(lines) + '{"name":"model_run","cat":"Session","ts":1,"dur":11}\n]\n'
    (run,) = runs_of(io.BufferedReader(io.BytesIO(text.encode())), 1_000_000)
    assert run == [
        Worked("outer", 1_002_000, 1_007_000),
        Worked("short", 1_007_000, 1_007_000),
        Worked("last", 1_007_000, 1_011_000),
    ]


def chain(*scopes: tuple[str, ...] | None) -> list[Operator]:
    """Each takes what the one before gives: ``n0`` gives ``v0``."""
    return [
        Operator(f"n{number}", f"Kind{number}", (f"v{number - 1}",), (f"v{number}",), of)
        for number, of in enumerate(scopes)
    ]


PATHS: Final = {"a": "a", "a.conv": "a.conv", "a.act": "a.act", "b": "b"}


def test_what_the_exporter_says_nothing_of_is_where_its_neighbours_are() -> None:
    exported = Graph(chain(("a", "a.conv"), None, ("a", "a.act")), frozenset({"v-1"}), PATHS)
    assert places(exported, chain(None, None, None))["n1"] == Place(("a",), ("a",))


def test_an_operator_of_the_module_around_is_named_by_its_kind() -> None:
    exported = Graph(chain(("a", "a.conv"), ("a",)), frozenset({"v-1"}), PATHS)
    (found,) = places(exported, [Operator("n1", "Fused", ("v-1",), ("v1",))]).values()
    assert found == Place(("a", "a.conv+kind1"), ("a", "a.conv+kind1"), ("a.conv",))


def test_what_a_runtime_says_that_it_was_made_of_counts() -> None:
    exported = Graph(chain(("a", "a.conv"), ("a", "a.act"), ("b",)), frozenset({"v-1"}), PATHS)
    executed = [
        Operator("made", "Any", ("x:0",), ("made:0",), origins=("n0", "n1")),
        Operator("before_n2", "Reorder", ("made:0",), ("before_n2:0",)),
        Operator("n2", "Any", ("before_n2:0",), ("n2:0",), origins=("n2",)),
    ]
    found = places(exported, executed)
    assert found["made"].paths == ("a", "a.conv+act")
    assert found["before_n2"] == found["n2"] == Place(("b",), ("b",))


def test_a_constant_that_two_layers_share_does_not_make_them_one() -> None:
    """As the sizes of a split are, of two blocks far apart (yolo26n's attention)."""
    before = Graph(
        [
            Operator("s1", "Split", ("x", "sizes"), ("y",), ("a",)),
            Operator("n1", "Relu", ("y",), ("z",), ("b",)),
            Operator("s2", "Split", ("z", "sizes"), ("out",), ("a.conv",)),
        ],
        frozenset({"x"}),
        PATHS,
    )
    after = [
        Operator("new1", "Split", ("x", "sizes"), ("y1",)),
        Operator("n1", "Relu", ("y1",), ("z",), ("b",)),
        Operator("new2", "Split", ("z", "sizes"), ("out1",)),
    ]
    found = places(before.optimised(after), after)
    assert {name: place.members for name, place in found.items() if place.members} == {}


def test_a_layer_that_is_called_by_several_names_has_one_path() -> None:
    exported = Graph(chain(("a", "a.act"), ("c", "c.act")), frozenset({"v-1"}), PATHS | {"c": "c", "c.act": "a.act"})
    found = places(exported, chain(None, None))
    assert found["n1"] == Place(("c", "c.act"), ("c", "a.act"))


def test_operators_of_another_program_are_of_no_layer() -> None:
    exported = Graph(chain(("a",)), frozenset({"v-1"}), PATHS)
    assert places(exported, [Operator("x", "Any", ("y",), ("z",))]) == {}


def test_layers_last_from_their_first_operator_to_their_last_and_come_back_as_parts() -> None:
    conv, act = Place(("a", "a.conv"), ("a", "a.conv")), Place(("a", "a.act"), ("a", "a.act"))
    worked = [
        Worked("conv", 10, 20),
        Worked("again", 22, 30),
        Worked("act", 31, 40),
        Worked("nobody's", 41, 50),
        Worked("conv", 51, 60),
    ]
    assert layer_spans(worked, {"conv": conv, "again": conv, "act": act}) == [
        LayerSpan("a.conv", 10, 30, False),
        LayerSpan("a.act", 31, 40, False),
        LayerSpan("a", 10, 40, False),
        LayerSpan("a.conv", 51, 60, True),
        LayerSpan("a", 51, 60, True),
    ]
