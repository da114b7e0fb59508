"""Derived metrics: definitions (data, ``metrics.toml``) and their evaluation.

A metric whose operand was not counted is null, never a guess: ``missing_operands`` says which one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Final

import msgspec
import polars as pl

MODELLED_OPERANDS: Final = frozenset({"macs", "bytes"})
GIVEN_OPERANDS: Final = MODELLED_OPERANDS | {"time", "counted-time", "threads"}
"""Operands that are no events."""


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One metric: ``formula`` is an SQL expression over operand names."""

    name: str
    title: str
    unit: str
    formula: str
    meaning: str
    digits: int
    core: bool = False

    @property
    def operands(self) -> tuple[str, ...]:
        """The names in the formula, each once."""
        return tuple(dict.fromkeys(pl.sql_expr(self.formula).meta.root_names()))

    @property
    def events(self) -> tuple[str, ...]:
        """The events in the formula, each once, without the thread selection."""
        return tuple(dict.fromkeys(name.split("@")[0] for name in self.operands if name not in GIVEN_OPERANDS))

    @property
    def modelled(self) -> bool:
        """Whether the model's analytic figures go into it."""
        return any(name in MODELLED_OPERANDS for name in self.operands)


@cache
def definitions() -> tuple[Metric, ...]:
    """The metrics that hwprof knows, in order of presentation."""
    text = resources.files("hwprof.analysis").joinpath("metrics.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomllib.loads(text)["metric"], list[Metric]))


def missing_operands(metric: Metric, available: Iterable[str]) -> tuple[str, ...]:
    """The metric's operands that are not among ``available``."""
    known = set(available)
    return tuple(name for name in metric.operands if name not in known)


def available_operands(frame: pl.DataFrame) -> list[str]:
    """The columns that hold at least one value."""
    return [name for name in frame.columns if frame[name].null_count() < frame.height]


def evaluate(operands: pl.DataFrame, metrics: Sequence[Metric]) -> pl.DataFrame:
    """``owner`` and one Float64 column a metric; null where an operand is missing or a divisor is zero."""
    columns = []
    for metric in metrics:
        if missing_operands(metric, operands.columns):
            columns.append(pl.lit(None, dtype=pl.Float64).alias(metric.name))
            continue
        value = pl.sql_expr(metric.formula).cast(pl.Float64)
        columns.append(pl.when(value.is_finite()).then(value).alias(metric.name))
    return operands.select("owner", *columns)
