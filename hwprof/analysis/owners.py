"""The owners of times and counts that are no leaf layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hwprof.run.owner_names import OWN as OWN
from hwprof.run.owner_names import ROOT_NAME as ROOT_NAME
from hwprof.run.owner_names import UNATTRIBUTED as UNATTRIBUTED
from hwprof.run.owner_names import WHOLE as WHOLE

if TYPE_CHECKING:  # what shows a kept report needs no tables
    import polars as pl

INFERENCE: Final = "inference"
"""The stage that layers are parts of."""

ROOT: Final = ""
"""The path of the model itself, as torch has it."""


def own(path: str) -> str:
    """The owner of the module's own code."""
    return f"{path or ROOT_NAME}{OWN}"


def is_leaf(owner: pl.Expr) -> pl.Expr:
    """Whether it is a leaf layer."""
    return ~is_rest(owner) & (owner != WHOLE)


def is_rest(owner: pl.Expr) -> pl.Expr:
    """Whether it is what is left of something beside the modules in it."""
    return (owner == UNATTRIBUTED) | owner.str.ends_with(OWN)
