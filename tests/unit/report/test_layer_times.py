"""What is said below the table of ``hwprof layers`` of how its times came to be."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from hwprof.analysis.forward_times import ForwardTimes
from hwprof.report.text import layer_times

NOTHING = pl.DataFrame(schema={"owner": pl.String, "ratio": pl.Float64})


ROWS = pl.DataFrame({"path": ["a", "whole"]})
TEN = ForwardTimes(ROWS, ROWS, runs=10, left_out=0, disturbed=0, watching=NOTHING)


def said(times: ForwardTimes, unseen: tuple[str, ...] = ()) -> list[str]:
    return layer_times.notes(times, 10, unseen, Console(file=io.StringIO()))


@pytest.mark.parametrize(
    ("known", "line"),
    [
        ({}, "time: mean of 10 forwards of the first input"),
        (
            {"runs": 7, "left_out": 3},
            "time: mean of 7 forwards of the first input, 3 disturbed ones left out",
        ),
        ({"runs": 3}, "time: mean of 3 forwards of the first input; the time limit left 3 of 10"),
        (
            {"disturbed": 10},
            "time: mean of 10 forwards of the first input; 10 disturbed: all are kept (--format csv has the least of"
            " each). Try: end other programs",
        ),
    ],
)
def test_it_is_said_of_how_many_forwards_times_are(known: dict[str, Any], line: str) -> None:
    assert said(replace(TEN, **known)) == [line]


def test_what_watching_costs_is_told_where_it_is_known() -> None:
    row = {
        "owner": "whole", "base_ns": 100.0, "base_iterations": 2, "observed_ns": 110.0, "observed_iterations": 10,
        "ratio": 1.1, "error": 0.02, "distinguishable": True,
    }  # fmt: skip
    _, cost = said(replace(TEN, watching=pl.DataFrame([row])))
    assert cost.startswith("watching each layer: inference") and "1.10" in cost and "10 vs 2" in cost


def test_modules_that_are_seen_in_part_are_named() -> None:
    assert said(TEN, ("a.b",))[1] == "not all calls of a.b are seen: the model's code replaces them"
