"""Counted FLOPs against analytic ones. They stand with the layers; this section has no part of its own."""

from __future__ import annotations

from typing import Final

import msgspec

COUNTED: Final = "counted_flops"
"""The metric that the check is about."""

AGREES: Final = "agrees"


class FlopCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One layer's FLOPs of one iteration. ``ratio`` is counted / analytic, null without MACs."""

    counted: float  # by the processor, or in instrumented code
    analytic: float  # two a multiply-accumulate, by arithmetic on shapes
    ratio: float | None  # counted over analytic
    verdict: str  # "agrees", or the name of the rule that explains it
    expected: bool  # it agrees, or differs for a reason in the nature of the layer
    reason: str | None  # why they differ
