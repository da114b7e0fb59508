"""Metrics derived from the counts. Data: ``metrics.toml``; names and titles are those of hardware counters' metrics."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import msgspec

from collectors.instrumented.cache_events import PREFIX
from hwprof.data_files import read_toml
from hwprof.hardware.metrics import operands, vocabulary
from hwprof.run.manifest import MetricDefinition


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of the file."""

    name: str
    formula: str
    meaning: str
    caveat: str | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    metric: tuple[Recipe, ...]


@cache
def recipes() -> tuple[Recipe, ...]:
    """All, in the file's order."""
    return read_toml(__name__, "metrics.toml", _File).metric


def definitions(counted: Collection[str]) -> list[MetricDefinition]:
    """The metrics, without those that need a simulated event which is not among the ``counted`` ones."""
    return [
        metric
        for metric in every()
        if not any(name.startswith(PREFIX) and name not in counted for name in operands(metric.formula))
    ]


def every() -> list[MetricDefinition]:
    """All of them, with the cache model's."""
    names = {metric.name: metric for metric in vocabulary()}
    return [
        names[recipe.name].defined(recipe.formula, meaning=recipe.meaning, caveat=recipe.caveat) for recipe in recipes()
    ]
