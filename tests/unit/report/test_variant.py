"""How far a variant's outputs agree with the model's own, as a reader sees it."""

from __future__ import annotations

import msgspec
import pytest

from hwprof.report.text.figures import ASCII
from hwprof.report.text.variant import agreement, name
from hwprof.run.trials import Difference
from hwprof.run.variants import MatchedBoxes, VariantRecord


@pytest.mark.parametrize(
    ("outputs", "boxes", "text"),
    [
        (None, None, ""),
        (Difference(largest=3e-7, mean=1e-8, tensors=4), None, "to 1e-06 of the largest value"),
        (Difference(largest=0.052, mean=0.003, tensors=4), (47, 49, 45),
         "to 0.05 of the largest value (mean 0.003), 45 of 47 boxes, 49 found"),
        (Difference(largest=0.0, tensors=0, unequal=2), (0, 0, 0), "2 of 2 tensors cannot be compared"),
        (None, (3, 3, 3), "3 of 3 boxes"),
    ],
)  # fmt: skip
def test_it_is_told_in_a_line(outputs: Difference | None, boxes: tuple[int, int, int] | None, text: str) -> None:
    found = MatchedBoxes(without=boxes[0], found=boxes[1], matched=boxes[2]) if boxes else None
    assert agreement(VariantRecord(["x"], outputs, found), ASCII) == text


def test_names_reach_no_terminal_as_they_are() -> None:
    assert "\x1b" not in name(VariantRecord(["a\x1b[31m", "b"]))


def test_a_run_with_hundreds_of_them_is_damaged() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode({"names": ["x"] * 1000}), type=VariantRecord)
