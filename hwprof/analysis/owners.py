"""The owners of times and counts that are no leaf layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # what shows a kept report needs no tables
    import polars as pl

UNATTRIBUTED: Final = "unattributed"
"""What lies within the whole and in no module."""

INFERENCE: Final = "inference"
"""The stage that layers are parts of."""

WHOLE: Final = "whole"
"""The owner of what everything must add up to: the inference stage, or the iteration where none is marked."""

ROOT: Final = ""
"""The path of the model itself, as torch has it."""

ROOT_NAME: Final = "(root)"

OWN: Final = " (own)"
"""What ends the owner of a module's own code: what it does itself, between the modules that it calls."""


def own(path: str) -> str:
    """The owner of the module's own code."""
    return f"{path or ROOT_NAME}{OWN}"


def is_leaf(owner: pl.Expr) -> pl.Expr:
    """Whether it is a leaf layer."""
    return ~is_rest(owner) & (owner != WHOLE)


def is_rest(owner: pl.Expr) -> pl.Expr:
    """Whether it is what is left of something beside the modules in it."""
    return (owner == UNATTRIBUTED) | owner.str.ends_with(OWN)
