"""How much longer iterations take in which somebody looks closely."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from hwprof.analysis.iterations import select
from hwprof.run.manifest import PassRecord


class Slower(NamedTuple):
    """Ratios: of the median, and of the least and most."""

    median: float
    least: float
    most: float


def slower(spans: pl.DataFrame, iterations: Sequence[int], main: pl.DataFrame, timed: PassRecord) -> Slower | None:
    """These ``iterations`` of a pass against the median of those that times are from in the main pass (``timed``);
    ``spans`` and ``main`` are the passes'. None where there are none."""
    mine, others = _lengths(spans, iterations), _lengths(main, select(timed.iterations).timed)
    if not mine or not others:
        return None
    usual = statistics.median(others)
    return Slower(statistics.median(mine) / usual, min(mine) / usual, max(mine) / usual)


def _lengths(spans: pl.DataFrame, iterations: Sequence[int]) -> list[int]:
    """Of those that lasted (ns)."""
    chosen = spans.filter((pl.col("kind") == "iteration") & pl.col("iteration").is_in(list(iterations)))
    lengths: list[int] = (chosen["end_ns"] - chosen["begin_ns"]).to_list()
    return [length for length in lengths if length > 0]
