"""Counts by kernel of spans that did the very same as another one: written once, and told of each."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from hwprof.run.tables import damaged


def of_all_spans(kernel_counts: pl.LazyFrame, repeated_spans: pl.LazyFrame) -> pl.LazyFrame:
    """The rows of ``kernel_counts`` of every span, in no order: of those that are in ``repeated_spans`` too."""
    which = repeated_spans.select("pass", span="like", again="span", in_iteration="iteration")
    again = kernel_counts.join(which, on=["pass", "span"]).with_columns(span="again", iteration="in_iteration")
    return pl.concat([kernel_counts, again.drop("again", "in_iteration")])


def require_sound(path: Path, repeated_spans: pl.DataFrame, spans: pl.DataFrame) -> None:
    """Raises ``DamagedError`` where rows of a pass name spans that it does not have, or others that have no rows of
    their own either. ``path``: of ``repeated_spans``."""
    named = pl.concat([repeated_spans["span"], repeated_spans["like"]]).unique()
    if not named.is_in(spans["span"].implode()).all():
        raise damaged(path, "it names spans that there are not")
    if repeated_spans["like"].is_in(repeated_spans["span"].implode()).any():
        raise damaged(path, "spans are like others that are in it too")
