"""What a run says of the variant that it measured: the same model, done in another way."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from hwprof.run.trials import Amount, Difference, Name

MOST_VARIANTS: Final = 20
"""Together."""


class MatchedBoxes(msgspec.Struct, frozen=True, kw_only=True):
    """How many boxes there are without and with the variant, in all inputs of an iteration, and how many pairs of one
    of each that are of the same class and have most of their area in common."""

    without: Amount
    found: Amount
    matched: Amount


class VariantRecord(msgspec.Struct, frozen=True):
    """What was changed, and how far from what the model gives without that is what it gives with it."""

    names: Annotated[list[Name], msgspec.Meta(max_length=MOST_VARIANTS)]
    outputs: Difference | None = None  # null: could not be compared
    boxes: MatchedBoxes | None = None  # null: of a model that finds none
