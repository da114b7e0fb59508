"""How far a variant's outputs agree with the model's own, as a reader sees it."""

from __future__ import annotations

import msgspec
import pytest

from hwprof.report.text.figures import ASCII
from hwprof.report.text.variant import agreement, agrees, name
from hwprof.run.trials import Difference
from hwprof.run.variants import MatchedBoxes, VariantRecord


@pytest.mark.parametrize(
    ("outputs", "boxes", "text"),
    [
        (None, None, ""),
        (Difference(largest=3e-7, mean=1e-8, tensors=4), None, "to 3e-07 of the largest value (mean 1e-08)"),
        (Difference(largest=0.0, mean=0.0, tensors=4), None, "to the bit"),
        (Difference(largest=0.052, mean=0.003, tensors=4), (47, 49, 45),
         "to 0.05 of the largest value (mean 0.003), 45 of 47 boxes, 49 found"),
        (Difference(largest=0.0, tensors=0, unequal=2), (0, 0, 0),
         "2 of 2 tensors of another shape or type, or not finite"),
        (None, (3, 3, 3), "3 of 3 boxes"),
    ],
)  # fmt: skip
def test_it_is_told_in_a_line(outputs: Difference | None, boxes: tuple[int, int, int] | None, text: str) -> None:
    found = MatchedBoxes(without=boxes[0], found=boxes[1], matched=boxes[2]) if boxes else None
    assert agreement(VariantRecord(["x"], outputs, found), ASCII) == text


@pytest.mark.parametrize(
    ("outputs", "boxes", "same"),
    [
        (Difference(largest=0.05, tensors=4), (47, 49, 47), True),
        (Difference(largest=0.5, tensors=4), None, False),
        (Difference(largest=0.0, tensors=1, unequal=1), None, False),
        (Difference(largest=0.0, tensors=1), (10, 10, 8), False),
        (Difference(largest=0.0, tensors=1), (0, 0, 0), True),
        (None, None, True),
    ],
)
def test_what_is_far_off_does_not_agree(
    outputs: Difference | None, boxes: tuple[int, int, int] | None, same: bool
) -> None:
    found = MatchedBoxes(without=boxes[0], found=boxes[1], matched=boxes[2]) if boxes else None
    assert agrees(VariantRecord(["x"], outputs, found)) is same


def test_names_reach_no_terminal_as_they_are() -> None:
    assert "\x1b" not in name(VariantRecord(["a\x1b[31m", "b"]))


def test_a_run_with_hundreds_of_them_is_damaged() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode({"names": ["x"] * 1000}), type=VariantRecord)
