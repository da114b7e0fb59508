"""Findings in the trace: over each layer, or the stage, that one is about, in every measured iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from hwprof.analysis.finding_times import finding_times
from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.slice_facts import DIGITS
from hwprof.trace.nesting import END_OF_TIME
from hwprof.trace.slices import write_columns
from hwprof.trace.tracks import FINDING, OPERATOR, Tracks

TEXTS: Final = ("evidence", "meaning", "remedy", "gain_of", "layer", "layers", "rule")
FIGURES: Final = ("gain_low", "gain_high", "iteration")
"""Columns that become annotations of a slice; ``layer`` is the one that it is over, ``layers`` are all."""


def write_findings(findings: Sequence[Finding], spans: pl.LazyFrame, layers: pl.DataFrame, tracks: Tracks) -> int:
    """Writes a track a finding, in their order, and returns how many slices these are. ``spans``: a pass's rows of that
    table; ``layers``: the run's."""
    if not findings:
        return 0
    times = finding_times(findings, spans.filter(pl.col("kind") != OPERATOR).collect(engine="streaming"), layers)
    for number, one in enumerate(findings):
        rows = times.filter(finding=number).with_columns(
            path=pl.lit(one.title),
            kind=pl.lit(FINDING),
            layers=pl.lit(", ".join(one.layers) or None, pl.String),
            **{name: pl.lit(getattr(one, name)) for name in ("evidence", "meaning", "remedy", "gain_of", "rule")},
            **{name: pl.lit(round(getattr(one, name), DIGITS)) for name in ("gain_low", "gain_high")},
        )
        for placed in tracks.finding(number + 1, one.rule).place(rows, END_OF_TIME) if rows.height else []:
            write_columns(placed, rows, np.empty(0, np.uint64), TEXTS, FIGURES)
    return times.height
