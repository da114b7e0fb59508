"""Tables of a million rows, worked on with the memory of a few: names as numbers, and some spans at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

COUNTS: Final = 100_000
"""That are attributed at a time: one iteration of 10,000 layers has a million, which would take 400 MB."""


def numbered(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Names that many rows have, as numbers (``Enum``): groups by them take a fraction of the memory, and of the
    time."""
    names = [name for name in columns if frame.schema[name] == pl.String]
    return frame.with_columns(pl.col(name).cast(pl.Enum(frame[name].drop_nulls().unique())) for name in names)


def some_at_a_time(spans: pl.DataFrame, counts: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Spans, with their counts: about ``COUNTS`` of these."""
    parts = counts.height // COUNTS + 1
    if parts == 1:
        yield spans, counts
        return
    for part in spans.iter_slices(spans.height // parts + 1):
        yield part, counts.join(part.select("span"), on="span", how="semi")
