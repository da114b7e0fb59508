"""How many images a second: of the inference alone, and of whole iterations, from reading to saving."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from hwprof.analysis.iterations import Iterations
from hwprof.analysis.owners import INFERENCE
from hwprof.unavailable import Unavailable


class Throughput(NamedTuple):
    """Times are medians over the timed iterations, in ns."""

    images: int  # of an iteration
    inference_ns: float  # all calls of the model in it
    iteration_ns: float
    inference_per_s: float  # images over these
    end_to_end_per_s: float


def throughput(spans: pl.DataFrame, iterations: Iterations, images: int) -> Throughput | Unavailable:
    """``spans``: of a pass, as the table has them; ``images``: of an iteration, more than none."""
    timed = spans.filter(pl.col("iteration").is_in(list(iterations.timed)))
    inference_ns = _median_ns(timed, (pl.col("kind") == "stage") & (pl.col("path") == INFERENCE))
    iteration_ns = _median_ns(timed, pl.col("kind") == "iteration")
    if not inference_ns or not iteration_ns:
        return Unavailable("iterations without the stage inference")
    return Throughput(images, inference_ns, iteration_ns, images / inference_ns * 1e9, images / iteration_ns * 1e9)


def _median_ns(timed: pl.DataFrame, which: pl.Expr) -> float | None:
    """Of the time that these spans take in an iteration together."""
    sums = timed.filter(which).group_by("iteration").agg(ns=(pl.col("end_ns") - pl.col("begin_ns")).sum())
    found = sums["ns"].median()
    return float(found) if isinstance(found, (int, float)) else None
