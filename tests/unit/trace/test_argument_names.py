"""Names of arguments: identifiers, and each its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.trace.argument_names import ArgumentNames, identifier


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpi", "cpi"),
        ("context-switches", "context_switches"),
        ("cpu_core/cycles/", "cpu_core_cycles"),
        ("PAPI_TOT_CYC", "PAPI_TOT_CYC"),
        ("GFLOP/s (modelled)", "GFLOP_s_modelled"),
        ("128-bit", "_128_bit"),
        ("µops", "ops"),
        ("", "_"),
    ],
)
def test_a_name_is_an_identifier(name: str, expected: str) -> None:
    assert identifier(name) == expected


@given(st.lists(st.text(max_size=4), unique=True))
def test_no_two_names_share_one(names: list[str]) -> None:
    given_out = ArgumentNames({"span"})
    first = [given_out.of(name) for name in names]
    assert [given_out.of(name) for name in names] == first
    assert len({name.lower() for name in first} | {"span"}) == len(names) + 1
    assert all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in first)


def test_names_that_differ_in_what_sql_does_not_see_are_numbered() -> None:
    names = ArgumentNames({"span"})
    assert [names.of(name) for name in ("l1-miss", "l1_miss", "L1.miss", "span")] == [
        "l1_miss",
        "l1_miss_2",
        "L1_miss_3",
        "span_2",
    ]
