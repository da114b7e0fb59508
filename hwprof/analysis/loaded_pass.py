"""A completed pass with its rows, and what is said of figures that it does not allow."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from hwprof.analysis import noise
from hwprof.analysis.attribution import Attribution
from hwprof.run.manifest import PassRecord
from hwprof.unavailable import Unavailable


@dataclass(frozen=True)
class LoadedPass:
    """A completed pass, its rows of the tables ``spans`` and ``counts`` (those of iterations and stages), and whose
    all of its counts are."""

    record: PassRecord
    spans: pl.DataFrame
    counts: pl.DataFrame
    attribution: Attribution


def on_these(found: Unavailable | None, *passes: LoadedPass) -> Unavailable | None:
    """Without a remedy where a control group's limit disturbed the passes: a quiet machine does not help."""
    limited = any(noise.is_limited(one.record) for one in passes)
    return Unavailable(found.reason) if found is not None and limited else found
