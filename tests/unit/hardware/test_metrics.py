from __future__ import annotations

import re
from typing import get_args

import polars as pl
import pytest

from hwprof.hardware.catalogue import Recipe, microarchitecture
from hwprof.hardware.metrics import (
    MetricFacts,
    Section,
    csv_unit,
    definition,
    facts,
    groups,
    independent,
    operands,
    recipes,
    vocabulary,
)

NAME = MetricFacts(name="x", title="X", unit="%", digits=1, group="cpi", meaning="of the vocabulary")
COUNTS = {"a": 3.0, "b": 5.0, "c": 7.0, "t": 2.0, "big/a/": 3.0, "big/b/": 5.0, "small/a/": 11.0, "small/c/": 7.0}


def value(formula: str) -> float:
    found = pl.DataFrame([COUNTS]).select(pl.sql_expr(formula).cast(pl.Float64)).item()
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize(
    ("recipe", "formula", "expected"),
    [
        (Recipe(name="x", of='"a"'), '"a"', 3),
        (Recipe(name="x", of='"a"', per='"b"'), '"a" / "b"', 3 / 5),
        (Recipe(name="x", of='"a"', per='"b"', scale=1000), '1000 * "a" / "b"', 600),
        (Recipe(name="x", of='"a" + "b"', per='"c"'), '("a" + "b") / "c"', 8 / 7),
        (Recipe(name="x", of='("a" + "b") * ("c")', per='"t"'), '(("a" + "b") * ("c")) / "t"', 28),
        (Recipe(name="x", of='("a" + "b")', per='("a" - "b")', scale=2), '2 * ("a" + "b") / ("a" - "b")', -8),
        (Recipe(name="x", of='"a"', per='6 * "b"', scale=100), '100 * "a" / (6 * "b")', 10),
    ],
)
def test_a_formula_is_scale_times_numerator_by_denominator(recipe: Recipe, formula: str, expected: float) -> None:
    made = definition(NAME, [("cpu", recipe)], frozenset())
    assert made.formula == formula
    assert value(made.formula) == pytest.approx(expected)


def test_kinds_of_core_are_summed_before_they_are_divided() -> None:
    big = Recipe(name="x", of='"a"', per='"b" + "t"', scale=10, meaning="big", caveat="one")
    small = Recipe(name="x", of='"c"', per='"a"', scale=10, caveat="two")
    made = definition(NAME, [("big", big), ("small", small)], frozenset({"t"}))
    assert operands(made.formula) == ("big/a/", "small/c/", "big/b/", "t", "small/a/")
    assert value(made.formula) == pytest.approx(10 * (3 + 7) / (5 + 2 + 11))
    assert (made.meaning, made.caveat) == ("big", "one / two")


def test_what_all_kinds_share_is_counted_once() -> None:
    recipe = Recipe(name="x", of='"a"', per='"t"')
    made = definition(NAME, [("big", recipe), ("small", recipe)], frozenset({"t"}))
    assert value(made.formula) == pytest.approx((3 + 11) / 2)
    assert made.meaning == "of the vocabulary"


def test_scales_that_differ_stay_with_their_numerators() -> None:
    big, small = Recipe(name="x", of='"a"', per='"b"', scale=2), Recipe(name="x", of='"c"', per='"a"', scale=4)
    made = definition(NAME, [("big", big), ("small", small)], frozenset())
    assert value(made.formula) == pytest.approx((2 * 3 + 4 * 7) / (5 + 11))


def test_names_and_groups_of_the_vocabulary() -> None:
    names = [metric.name for metric in vocabulary()]
    assert len(names) == len(set(names))
    assert groups()[:2] == ("cpi", "cache")
    assert not {"all", "default"} & {*names, *groups()}
    assert {metric.group for metric in vocabulary()} == set(groups())


def test_every_metric_has_one_place() -> None:
    known = facts()
    assert {*known} == {metric.name for metric in vocabulary()} | {metric.name for metric in independent()}
    for metric in known.values():
        other = metric.part_of or metric.behind
        if other is not None:
            assert known[other].group == metric.group or metric.behind, metric.name
            assert known[other].section == metric.section, metric.name
        assert bool(metric.short_title) == bool(metric.behind), metric.name
    assert {metric.section for metric in known.values()} == set(get_args(Section))


def test_units_of_csv_headers_are_words() -> None:
    units = {csv_unit(metric.unit) for metric in facts().values()}
    assert {"cycles_per_instruction", "percent", "misses_per_1000_instructions", "gflop_per_s"} <= units
    assert all(re.fullmatch(r"[a-z0-9_]+", unit) for unit in units)
    assert csv_unit("Apples/Tree of Mine") == "apples_per_tree_of_mine"


def test_an_unknown_processor_has_the_generic_recipes_and_a_known_one_only_the_portable_ones() -> None:
    known = recipes(microarchitecture("amd-zen4"))
    assert "cache_mpki" in recipes(None) and "cache_mpki" not in known
    assert known["cpi"] == recipes(None)["cpi"]
