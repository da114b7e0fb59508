"""Counts by kernel of spans that did the very same as another one: written once, and told of each."""

from __future__ import annotations

import polars as pl


def of_all_spans(kernel_counts: pl.LazyFrame, repeated_spans: pl.LazyFrame) -> pl.LazyFrame:
    """The rows of ``kernel_counts`` of every span, in no order: of those that are in ``repeated_spans`` too."""
    which = repeated_spans.select("pass", span="like", again="span", in_iteration="iteration")
    again = kernel_counts.join(which, on=["pass", "span"]).with_columns(span="again", iteration="in_iteration")
    return pl.concat([kernel_counts, again.drop("again", "in_iteration")])
