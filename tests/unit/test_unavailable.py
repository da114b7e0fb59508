"""The one format in which a user reads why something is not there."""

from __future__ import annotations

import pytest

from hwprof.unavailable import Unavailable, explain


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("no PMU", "no PMU. Try: a"),
        ("a name: did you mean b?", "a name: did you mean b? Try: a"),
        ("No.", "No. Try: a"),
    ],
)
def test_a_sentence_ends_once(reason: str, sentence: str) -> None:
    assert explain(reason, "a") == sentence


def test_without_a_remedy_the_reason_stands_alone() -> None:
    assert str(Unavailable("no PMU")) == "not available: no PMU"
