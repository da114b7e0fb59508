"""Which poolings read the same input."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from hwprof.analysis.findings.facts import Pooling
from hwprof.analysis.model_facts import poolings
from hwprof.run.schema import TABLES


def layers(rows: Sequence[tuple[str, str | None, int | None]]) -> pl.DataFrame:
    schema = {name: TABLES["layers"][name] for name in ("path", "pooling", "input")}
    return pl.DataFrame(rows, schema=schema, orient="row")


SAME = "s1x1 p2x2 d1x1"


def test_those_of_one_input_are_a_group_by_size() -> None:
    rows = [
        ("spp.2", "max k13x13 s1x1 p6x6 d1x1", 7),
        ("spp.0", f"max k5x5 {SAME}", 7),
        ("spp.1", "max k9x9 s1x1 p4x4 d1x1", 7),
        ("elsewhere", f"max k5x5 {SAME}", 8),
        ("conv", None, 7),
    ]
    assert poolings(layers(rows)) == [[Pooling("spp.0", 5), Pooling("spp.1", 9), Pooling("spp.2", 13)]]


@pytest.mark.parametrize(
    "other",
    [
        "max k9x9 s2x2 p4x4 d1x1",  # not at every place
        "max k9x9 s1x1 p3x3 d1x1",  # another size of output
        "max k9x9 s1x1 p4x4 d2x2",  # with gaps
        "max k9x5 s1x1 p4x2 d1x1",  # not square
        "avg k9x9 s1x1 p4x4 d1x1",
    ],
)
def test_another_kind_of_pooling_is_no_part_of_a_chain(other: str) -> None:
    assert poolings(layers([("a", f"max k5x5 {SAME}", 1), ("b", other, 1)])) == []


def test_of_what_was_not_called_nothing_is_known() -> None:
    assert poolings(layers([("a", f"max k5x5 {SAME}", None), ("b", "max k9x9 s1x1 p4x4 d1x1", None)])) == []
    assert poolings(layers([])) == []
