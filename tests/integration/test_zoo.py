"""Whole runs, with all defaults, of models that profilers stumble over; ``python -m scripts.zoo`` does all of them."""

from __future__ import annotations

import pytest

from scripts.zoo import collected, names, wrong
from tests.support.requirements import require_module

DELICATE = ("encoder", "quantised_lstm", "exported", "on_threads", "generators", "functions_only", "deep", "empty")


@pytest.mark.parametrize("name", DELICATE)
def test_a_report_of_it_holds(name: str) -> None:
    """But for the closure, which is the account of a quiet machine."""
    require_module("torch")
    report, why = collected(name)
    assert report is not None, why
    assert [text for text in wrong(report) if not text.endswith("of CPU time accounted for")] == []
    assert report["layers"]["whole"]["time"]["median_ns"] > 0


def test_the_zoo_is_large() -> None:
    assert len(names()) >= 30
    assert set(DELICATE) < set(names())
