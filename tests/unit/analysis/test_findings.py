"""Each rule finds its cause, and is silent without it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.findings.facts import Facts, Kernel, Layer, Share
from hwprof.analysis.findings.rules import RULES, find_all

COMPUTES = {"compute": Share(0.97, 0.96, 0.98)}


def share(value: float) -> Share:
    return Share(value, 0.9 * value, 1.1 * value)


def parts(**more: float) -> dict[str, Share]:
    return {"compute": share(1 - sum(more.values())), **{name: share(value) for name, value in more.items()}}


LAYERS = (
    Layer("a", 0.5, {"compute": 0.7, "layout": 0.3, "waiting": 0.0, "dispatch": 0.0}),
    Layer("b", 0.3, {"compute": 0.5, "layout": 0.1, "waiting": 0.4, "dispatch": 0.0}),
    Layer("c", 0.2, {"compute": 0.2, "dispatch": 0.8}),
)
QUIET = Facts(
    parts=parts(layout=0.01, waiting=0.02, dispatch=0.05), layers=LAYERS, convolutions=9, threads=2, processors=2
)

CAUSES: dict[str, dict[str, Any]] = {
    "layout_changes": {"parts": parts(layout=0.2)},
    "fresh_memory": {"parts": parts(page_faults=0.1, allocation=0.03), "anew": ("a", "c"), "faults": 48218.0},
    "scalar_pooling": {"kernels": (Kernel("at::native::cpu_max_pool (parallel)", "libtorch_cpu.so", share(0.1)),)},
    "default_blas": {
        "kernels": tuple(Kernel(f"mkl_blas_def_{n}", "t", share(0.03)) for n in "ab"),
        "vendor": "AuthenticAMD",
    },
    "memory_bound": {"layers": tuple(one._replace(bound="DRAM bandwidth") for one in LAYERS[1:])},
    "team_waits": {"parts": parts(waiting=0.4)},
    "dispatch": {"parts": parts(dispatch=0.4)},
    "postprocessing": {"stages": {"nms": 0.3, "postprocess": 0.35, "load": 0.1}},
}


def test_nothing_is_found_where_nothing_is_lost() -> None:
    assert find_all(QUIET) == [] and find_all(Facts()) == []


@pytest.mark.parametrize("rule", CAUSES)
def test_a_rule_finds_its_cause_alone(rule: str) -> None:
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES[rule]))
    assert found.rule == rule and 0 <= found.gain_low < found.gain_high <= 1
    assert found.title and found.evidence and found.meaning and found.remedy


def test_there_is_a_case_for_every_rule() -> None:
    assert len(CAUSES) == len(RULES)


@pytest.mark.parametrize(
    ("rule", "without"),
    [
        ("layout_changes", {"convolutions": 0}),
        ("fresh_memory", {"anew": ()}),
        ("default_blas", {"vendor": "GenuineIntel"}),
        ("team_waits", {"threads": 1}),
        ("memory_bound", {"layers": tuple(one._replace(bound="compute") for one in LAYERS)}),
    ],
)
def test_what_looks_like_it_is_not_it(rule: str, without: dict[str, Any]) -> None:
    assert find_all(dataclasses.replace(QUIET, **{**CAUSES[rule], **without})) == []


def test_evidence_names_the_layers_that_lose_most() -> None:
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(layout=0.2)))
    assert list(found.layers) == ["a", "b"] and "20.0% (18.0 to 22.0%) of the time, most in a, b" in found.evidence
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["fresh_memory"]))
    assert "48,218 page faults" in found.evidence and "MALLOC_MMAP_THRESHOLD_" in found.remedy
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["memory_bound"]))
    assert found.evidence.startswith("50.0% of the time, most in b, c")


def test_threads_beyond_the_processors_are_named_as_that() -> None:
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(waiting=0.2), threads=8))
    assert (
        found.title == "more threads than processors"
        and found.remedy.startswith("torch.set_num_threads(2)")
        and found.remedies[0] == "threads=2"
    )
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(waiting=0.2)))
    assert "--threads" not in found.remedy, "half of the threads would take longer"


def test_what_could_win_most_comes_first() -> None:
    several = dataclasses.replace(QUIET, parts=parts(layout=0.1, waiting=0.3, dispatch=0.2))
    assert [one.rule for one in find_all(several)] == ["team_waits", "dispatch", "layout_changes"]


@given(
    st.dictionaries(
        st.sampled_from(["compute", "layout", "page_faults", "allocation", "waiting", "dispatch"]),
        st.floats(0, 1).map(lambda value: Share(value, value, value)),
    ),
    st.integers(1, 512),
    st.integers(1, 512),
)
def test_gains_are_intervals_within_the_whole(found: dict[str, Share], threads: int, processors: int) -> None:
    facts = Facts(parts=found, layers=LAYERS, anew=("a",), convolutions=1, threads=threads, processors=processors)
    for one in find_all(facts):
        assert 0 <= one.gain_low <= one.gain_high <= 1
