"""When what a finding is about ran."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.finding_times import SCHEMA, finding_times
from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.run.schema import conform

MODULES = {"": False, "a": False, "a.x": True, "a.y": True, "b": True}
LAYERS = conform("layers", pl.DataFrame([{"path": path, "leaf": leaf} for path, leaf in MODULES.items()]))
ITERATION = (
    ("iteration", "iteration 0", 0, 100),
    ("stage", "load", 0, 20),
    ("stage", "inference", 20, 90),
    ("layer", "", 22, 88),
    ("layer", "a", 25, 60),
    ("layer", "a.x", 30, 40),
    ("layer", "a.y", 45, 60),
    ("layer", "b", 60, 85),
)
"""Kind, path, begin and end of each span; ``a`` has 10 ns of its own, and the model 6."""


def finding(layers: tuple[str, ...] = (), **more: Any) -> Finding:
    return Finding("rule", "title", "evidence", "meaning", "remedy", 0.0, 0.5, layers, **more)


def spans(*iterations: bool) -> pl.DataFrame:
    """Iterations one after the other, 100 ns each; whether each is a warm-up."""
    rows = [
        {"iteration": number, "warmup": warmup, "tid": 1, "pid": 1, "kind": kind, "path": path}
        | {"begin_ns": 100 * number + begin, "end_ns": 100 * number + end, "span": 10 * number + place}
        for number, warmup in enumerate(iterations)
        for place, (kind, path, begin, end) in enumerate(ITERATION)
    ]
    return conform("spans", pl.DataFrame(rows))


def times(*findings: Finding) -> list[tuple[int, int, str | None, int, int]]:
    return finding_times(findings, spans(False), LAYERS).rows()


def test_a_leaf_s_calls_and_a_block_s_in_each_measured_iteration() -> None:
    found = finding_times([finding(("b",)), finding(("a", "b"))], spans(True, False, False), LAYERS)
    assert found.schema == SCHEMA
    assert found.rows() == [
        (0, 1, "b", 160, 185),
        (0, 2, "b", 260, 285),
        (1, 1, "a", 125, 160),
        (1, 1, "b", 160, 185),
        (1, 2, "a", 225, 260),
        (1, 2, "b", 260, 285),
    ]


def test_own_code_is_what_lies_between_the_modules_that_a_block_calls() -> None:
    assert times(finding(("a (own)",))) == [(0, 0, "a (own)", 25, 30), (0, 0, "a (own)", 40, 45)]
    assert times(finding((UNATTRIBUTED,))) == [(0, 0, UNATTRIBUTED, 20, 22), (0, 0, UNATTRIBUTED, 88, 90)]


def test_what_names_no_layer_is_about_a_stage_the_inference_or_the_iteration() -> None:
    assert times(finding(stage="load", gain_of="iteration")) == [(0, 0, None, 0, 20)]
    assert times(finding()) == [(0, 0, None, 20, 90)]
    assert times(finding(gain_of="iteration")) == [(0, 0, None, 0, 100)]


def test_nothing_where_nothing_ran() -> None:
    assert times() == times(finding(("c",))) == times(finding(stage="nms")) == []
    assert finding_times([finding(), finding(("b",))], spans(True), LAYERS).is_empty()


OWNERS = ("a.x", "a.y", "b", "a (own)", "(root) (own)", UNATTRIBUTED)


@given(st.sets(st.sampled_from(OWNERS), min_size=1), st.integers(1, 3))
def test_owners_share_the_inference_out(chosen: set[str], number: int) -> None:
    """What some owners have and what the others have is all of the inference, and no time is anybody's twice."""
    others = tuple(set(OWNERS) - chosen)
    found = finding_times([finding(tuple(chosen)), finding(others or ("c",))], spans(*[False] * number), LAYERS)
    ordered = found.sort("begin_ns")
    assert (ordered["begin_ns"][1:] >= ordered["end_ns"][:-1]).all()
    assert (found["end_ns"] - found["begin_ns"]).sum() == 70 * number
