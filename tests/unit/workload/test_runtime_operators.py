"""Operators of runtimes and the layers that they are of: ``fixtures/onnxruntime`` has what ``models/runtimes.several``
became as ONNX, as ONNX Runtime 1.32 executed it, and that one's profile of three calls."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

from hwprof.errors import HwprofError
from hwprof.workload.runtimes.layer_spans import LayerSpan, Worked, layer_spans
from hwprof.workload.runtimes.matching import members, optimised
from hwprof.workload.runtimes.operators import IDENTITY, Graph, Operator, Place, fused, places
from hwprof.workload.runtimes.products import Products, products, together
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


def placed(exported: Graph, executed: Sequence[Operator]) -> dict[str, Place]:
    return places(exported, executed, members(exported, executed))


def test_fused_operators_are_of_a_group_and_layout_changes_of_whom_they_serve() -> None:
    require_module("onnx")
    from hwprof.workload.runtimes.onnx_runtime import operators

    executed = operators(RECORDED / "optimised.onnx")
    found = placed(recorded(), executed)
    assert set(found) == {one.name for one in executed}
    by_path: dict[str, list[str]] = {}
    for one in executed:
        by_path.setdefault(".".join(found[one.name].paths[-1:]), []).append(one.kind)
    assert {path: sorted(kinds) for path, kinds in by_path.items()} == {
        "stem+bn": ["Conv"],
        "blocks.0.conv+act": ["Conv", "ReorderOutput"],
        "blocks.1.conv+act": ["Conv", "ReorderOutput"],
        "blocks.0": ["Add"],
        "blocks.1": ["Add"],
        "words": ["Gather"],
        "head": ["Gemm"],
        "": ["Add", "ReduceMean", "ReduceMean", "ReorderOutput"],  # the model's own
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
    assert placed(exported, chain(None, None, None))["n1"] == Place(("a",), ("a",))


def test_an_operator_of_the_module_around_is_named_by_its_kind() -> None:
    exported = Graph(chain(("a", "a.conv"), ("a",)), frozenset({"v-1"}), PATHS)
    (found,) = placed(exported, [Operator("n1", "Fused", ("v-1",), ("v1",))]).values()
    assert found == Place(("a", "a.conv+kind1"), ("a", "a.conv+kind1"), ("a.conv",))


def test_what_a_runtime_says_that_it_was_made_of_counts() -> None:
    exported = Graph(chain(("a", "a.conv"), ("a", "a.act"), ("b",)), frozenset({"v-1"}), PATHS)
    executed = [
        Operator("made", "Any", ("x:0",), ("made:0",), origins=("n0", "n1")),
        Operator("before_n2", "Reorder", ("made:0",), ("before_n2:0",)),
        Operator("n2", "Any", ("before_n2:0",), ("n2:0",), origins=("n2",)),
    ]
    found = placed(exported, executed)
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
    found = placed(optimised(before, after), after)
    assert {name: place.members for name, place in found.items() if place.members} == {}


def test_a_layer_that_is_called_by_several_names_has_one_path() -> None:
    exported = Graph(chain(("a", "a.act"), ("c", "c.act")), frozenset({"v-1"}), PATHS | {"c": "c", "c.act": "a.act"})
    found = placed(exported, chain(None, None))
    assert found["n1"] == Place(("c", "c.act"), ("c", "a.act"))


def test_operators_of_another_program_are_of_no_layer() -> None:
    exported = Graph(chain(("a",)), frozenset({"v-1"}), PATHS)
    assert placed(exported, [Operator("x", "Any", ("y",), ("z",))]) == {}


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


def residual(ends_in: str | None) -> tuple[Graph, list[Operator]]:
    """``b(act(a(other) + x))``, in which the runtime adds and activates where it does ``a``, in a layout of its own."""
    exported = [
        Operator("a", "Conv", ("other", "wa"), ("va",), ("a",)),
        Operator("add", "Add", ("va", "x"), ("sum",), ()),
        Operator("act", "Relu", ("sum",), ("activated",), ("act",)),
        Operator("b", "Conv", ("activated", "wb"), ("vb",), ("b",)),
    ]
    executed = [
        Operator("va_own", "Conv", ("other", "wa", "x"), ("token",), origins=("va",), ends_in=ends_in),
        Operator("vb_own", "Conv", ("token", "wb"), ("token2",), origins=("vb",)),
        Operator("out", "ReorderOutput", ("token2",), ("vb",), moves=True),
    ]
    return Graph(exported, frozenset({"x", "other"}), {name: name for name in ("a", "act", "b")}), executed


def test_a_sum_and_an_activation_are_done_where_the_runtime_says_so() -> None:
    found = placed(*residual("Relu"))
    assert [found[name].paths[-1] for name in ("va_own", "vb_own", "out")] == ["a+add+act", "b", "b"]
    assert found["va_own"].members == ("a", "act")


def test_what_is_taken_twice_is_added_to_what_is_made_of_it() -> None:
    """``a(x) + x``: the operator takes ``x`` as ``a`` does, and once more."""
    exported, executed = residual("Relu")
    graph = exported._replace(operators=[exported.operators[0]._replace(inputs=("x", "wa")), *exported.operators[1:]])
    found = placed(graph, [executed[0]._replace(inputs=("x", "wa", "x")), *executed[1:]])
    assert found["va_own"].paths[-1] == "a+add+act"


def test_an_activation_that_nobody_tells_of_is_done_by_who_takes_what_it_took() -> None:
    found = placed(*residual(None))
    assert [found[name].paths[-1] for name in ("va_own", "vb_own")] == ["a+add", "act+b"]


def test_a_layout_is_nobody_s_whose_value_it_gives() -> None:
    exported = Graph(chain(("a", "a.conv"), ("a", "a.act"), ("b",)), frozenset({"v-1"}), PATHS)
    executed = [
        Operator("v1_own", "Conv", ("v-1",), ("token",), origins=("v1",)),
        Operator("reorder", "ReorderOutput", ("token",), ("v1",), moves=True),
        Operator("n2", "Kind2", ("v1",), ("v2",)),
    ]
    found = placed(exported, executed)
    assert [found[one.name].paths[-1] for one in executed] == ["a.conv+act", "b", "b"]


def test_what_does_nothing_makes_no_group() -> None:
    exported = Graph(
        [
            Operator("copy", IDENTITY, ("x",), ("same",), ("a", "a.act")),
            Operator("conv", "Conv", ("same", "w"), ("y",), ("a", "a.conv")),
        ],
        frozenset({"x"}),
        PATHS,
    )
    found = placed(exported, [Operator("conv", "Conv", ("x", "w"), ("y",))])
    assert found["conv"] == Place(("a", "a.conv"), ("a", "a.conv"))


def test_products_are_where_the_runtime_multiplies() -> None:
    exported, executed = residual("Relu")
    does = members(exported, executed)
    assert products(exported, executed, does, places(exported, executed, does)) == {
        "a": Products({"a+add+act": 1}, True),
        "b": Products({"b": 1}, True),
    }


def test_products_by_other_weights_are_not_known_to_be_as_many() -> None:
    one = Products({"p": 1, "q": 1}, False)
    assert one.share("p") is None and one.share("elsewhere") == 0
    assert Products({"p": 1, "q": 3}, True).share("q") == Fraction(3, 4)
    assert Products({"p": 2}, False).share("p") == 1, "all of them are there"
    assert together(Products({"p": 1}, True), Products({"p": 2}, True)) == Products({"p": 3}, True)
    assert together(Products({"p": 1}, True), Products({"q": 1}, True)).share("p") is None
    exported = Graph(
        [
            Operator("first", "MatMul", ("x", "w"), ("v",), ("a",)),
            Operator("again", "MatMul", ("v", "w"), ("u",), ("a",)),
            Operator("other", "MatMul", ("u", "x"), ("y",), ("b",)),
            Operator("other_2", "MatMul", ("y", "x"), ("z",), ("b",)),
        ],
        frozenset({"x"}),
        PATHS,
    )
    executed = [one._replace(scopes=None) for one in exported.operators]
    does = members(exported, executed)
    found = products(exported, executed, does, places(exported, executed, does))
    assert found == {"a": Products({"a": 2}, True), "b": Products({"b": 2}, False)}


def test_a_product_whose_bias_is_added_elsewhere_is_where_it_is_multiplied() -> None:
    exported = Graph(
        [
            Operator("conv", "Conv", ("x", "w", "bias"), ("y",), ("a", "a.conv")),
            Operator("act", "Clip", ("y",), ("z",), ("a", "a.act")),
        ],
        frozenset({"x"}),
        PATHS,
    )
    executed = [
        Operator("conv/WithoutBiases", "Convolution", ("x",), ("own",), origins=("conv",)),
        Operator("act", "Subgraph", ("own",), ("z",), origins=("conv", "act")),
    ]
    does = members(exported, executed)
    found = products(exported, executed, does, places(exported, executed, does))
    assert found == {"a.conv": Products({"a.conv": 1}, True)}
