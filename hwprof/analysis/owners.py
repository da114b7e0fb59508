"""The owners of times and counts that are no layer."""

from __future__ import annotations

from typing import Final

UNATTRIBUTED: Final = "unattributed"
"""What lies within the whole and in no leaf layer."""

INFERENCE: Final = "inference"
"""The stage that layers are parts of."""

WHOLE: Final = "whole"
"""The owner of what everything must add up to: the inference stage, or the iteration where none is marked."""
