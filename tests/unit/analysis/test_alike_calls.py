"""Which calls are made from one line: where looks at alike ones agree."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.alike_calls import agreed, groups
from tests.support.small_tables import layers

ROWS = [("", "Net", False), ("head", "Head", False)]
ROWS += [(f"body.{n}", "Conv", False) for n in range(4)]
ROWS += [(f"body.{n}.conv", "Conv2d", True) for n in range(4)]
ROWS += [(f"head.{n}", "Linear", True) for n in range(4)]
ROWS += [("head.conv", "Conv", False), ("head.conv.conv", "Conv2d", True), ("body", "Sequential", False)]
GROUPS = groups(layers(ROWS))
Look = tuple[str | None, str, str | None, int | None]
CONV = ("Conv.forward", 98)


def told(looks: list[Look], asked: list[tuple[str | None, str]]) -> list[int | None]:
    """``looks``: layer, operator, function and line that were met; ``asked``: layer and operator."""
    looked = pl.DataFrame(looks, schema=["layer", "operator", "function", "line"], orient="row")
    looked = looked.with_columns(pl.col("line").cast(pl.Int64), pl.col("layer", "function").cast(pl.String))
    wanted = pl.DataFrame(asked, schema={"layer": pl.String, "operator": pl.String}, orient="row")
    both = (one.join(GROUPS, on="layer", how="left", maintain_order="left") for one in (looked, wanted))
    return agreed(*both).to_list()


def looks(layer: str, operator: str, function: str | None, line: int | None, number: int = 1) -> list[Look]:
    return [(layer, operator, function, line)] * number


def test_a_class_has_the_same_line_in_each_of_its_instances_wherever_it_stands() -> None:
    met = [one for n in range(3) for one in looks(f"body.{n}.conv", "conv", *CONV)]
    assert told(met, [("body.3.conv", "conv"), ("head.conv.conv", "conv"), ("body.3.conv", "relu")]) == [98, 98, None]


def test_two_looks_are_too_few() -> None:
    assert told(looks("body.0.conv", "conv", *CONV, number=2), [("body.3.conv", "conv")]) == [None]


def test_a_line_that_lies_outside_of_the_class_holds_at_the_same_place_of_the_model_only() -> None:
    met = looks("body.1.conv", "conv", "Net.forward", 7, number=4)
    assert told(met, [("body.3.conv", "conv"), ("head.conv.conv", "conv")]) == [7, None]


def test_a_list_called_from_several_lines_has_none() -> None:
    met = [one for n in range(3) for one in looks(f"head.{n}", "addmm", "Head.forward", 10 + n)]
    assert told(met, [("head.3", "addmm")]) == [None]
    assert told(met + looks("head.0", "addmm", "Head.forward", 10, number=25), [("head.3", "addmm")]) == [10]


def test_own_code_is_called_from_the_class_itself() -> None:
    met = [one for n in range(3) for one in looks(f"body.{n} (own)", "cat", "Conv.forward.<locals>.<genexpr>", 5)]
    assert told(met, [("body.3 (own)", "cat"), ("head.conv (own)", "cat"), ("head (own)", "cat")]) == [5, 5, None]


def test_looks_that_met_no_line_of_the_pipeline_disagree() -> None:
    met = looks("body.0.conv", "conv", *CONV, number=4) + looks("body.1.conv", "conv", None, None, number=4)
    assert told(met, [("body.3.conv", "conv")]) == [None]


def test_of_what_lies_in_no_layer_nothing_is_told() -> None:
    assert told([(None, "conv", *CONV)] * 9, [(None, "conv")]) == [None]
