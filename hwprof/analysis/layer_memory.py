"""Layers' memory beside their page faults: which of them get their memory anew from the kernel at each call.

A page that a process has not had is a page fault when it is first touched, and the kernel clears it. An allocator
that gives large blocks back when they are freed (glibc: ``M_MMAP_THRESHOLD``, ``M_TRIM_THRESHOLD``) pays that at each
call of the layer that allocates them.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis import allocations
from hwprof.analysis.owners import WHOLE

ROWS: Final = pl.Schema(
    {
        **allocations.SCHEMA,
        "type": pl.String(),
        "faults": pl.Float64(),  # in one iteration; null: not counted
        "new_bytes": pl.Float64(),  # pages of these; huge pages are larger
        "fresh": pl.Float64(),  # of what it allocates; at most all of it. Null: it allocates nothing, or not known
    }
)

ANEW: Final = 0.5
"""A layer of which more is fresh gets its memory anew at each call."""

WORTH_NAMING: Final = 0.02
"""Of all new pages."""


MATTERS: Final = 0.01
"""Of what is allocated: fewer new pages are no reason to stand above others."""


def layer_memory(
    allocated: pl.DataFrame, faults: pl.DataFrame, layers: pl.DataFrame, page_bytes: int | None
) -> pl.DataFrame:
    """``allocated`` in ``allocations.SCHEMA``; ``faults``: ``layer`` and ``faults`` of an iteration; ``page_bytes``:
    None: not known. ``ROWS``, most new pages first, as far as they matter beside what all allocate, then most
    allocated."""
    types = layers.filter("leaf").unique("path", keep="first").select("type", layer="path")
    new = pl.col("faults") * pl.lit(page_bytes, pl.Int64)
    fresh = pl.when(pl.col("allocated_bytes") >= (page_bytes or 1)).then((new / pl.col("allocated_bytes")).clip(0, 1))
    matters = pl.col("new_bytes") >= MATTERS * pl.col("allocated_bytes").max()
    return (
        allocated.join(types, on="layer", how="left")
        .join(faults.unique("layer", keep="first"), on="layer", how="left")
        .with_columns(new_bytes=new, fresh=fresh)
        .sort(
            pl.col("layer") == WHOLE, pl.when(matters).then("new_bytes"), "allocated_bytes", "layer",
            descending=[True, True, True, False], nulls_last=True,
        )
        .select(ROWS.names())
        .cast(ROWS)
    )  # fmt: skip


def anew(rows: pl.DataFrame) -> list[str]:
    """The layers that get their memory anew at each call, most new pages first."""
    whole = float(rows.filter(layer=WHOLE)["new_bytes"].sum() or 0)
    parts = rows.filter((pl.col("layer") != WHOLE) & (pl.col("fresh") >= ANEW))
    return parts.filter(pl.col("new_bytes") >= WORTH_NAMING * whole)["layer"].to_list() if whole else []
