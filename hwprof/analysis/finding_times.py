"""When, in a pass, the layers or the stage ran that a finding is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from hwprof.analysis.attribution import whole_spans
from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.owners import INFERENCE
from hwprof.analysis.recursion import outermost_calls
from hwprof.analysis.samples import inference_spans
from hwprof.analysis.timeline import Timeline

SCHEMA: Final = pl.Schema(
    {
        "finding": pl.Int64,  # its place among those given
        "iteration": pl.Int32,
        "layer": pl.String,  # an owner of time, or a block; null: the inference, a stage or the whole iteration
        "begin_ns": pl.Int64,
        "end_ns": pl.Int64,
    }
)

_TIMES: Final = ("iteration", "begin_ns", "end_ns")


def finding_times(findings: Sequence[Finding], spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """Of each measured iteration, in ``SCHEMA``, by finding and time. ``spans`` of one pass; ``layers``: the run's.

    A leaf layer's own calls, a block's calls, and of own code and what is unattributed the times between the modules
    that it calls. A finding that names no layer is about a stage, else about all of what its gain is of.
    """
    measured = spans.filter((pl.col("iteration") >= 0) & ~pl.col("warmup"))
    owned = _owned(inference_spans(measured, layers))
    blocks = measured.filter((pl.col("kind") == "layer") & ~pl.col("path").is_in(owned["layer"].unique().implode()))
    named = pl.concat([owned, outermost_calls(blocks).select(*_TIMES, layer="path").select(owned.columns)])
    found = [
        (_of(finding, measured) if not finding.layers else named.filter(pl.col("layer").is_in(list(finding.layers))))
        .sort("begin_ns", "end_ns")
        .with_columns(finding=pl.lit(number))
        .select(SCHEMA.names())
        .cast(SCHEMA)
        for number, finding in enumerate(findings)
    ]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *found])


def _owned(owners: pl.DataFrame) -> pl.DataFrame:
    """The times that each owner has for itself."""
    timeline = Timeline.of(owners)
    _, piece, begin, end = timeline.pieces(timeline.edges[:1], timeline.edges[-1:])
    rows = owners.select("iteration", layer="path")[timeline.owner[piece]]
    return rows.with_columns(begin_ns=pl.Series(begin), end_ns=pl.Series(end))


def _of(finding: Finding, measured: pl.DataFrame) -> pl.DataFrame:
    if finding.stage is not None:
        spans = measured.filter(kind="stage", path=finding.stage)
    elif finding.gain_of == INFERENCE:
        spans, _ = whole_spans(measured)
    else:
        spans = measured.filter(kind="iteration")
    return spans.select(*_TIMES, layer=pl.lit(None, pl.String))
