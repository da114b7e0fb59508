"""Kernels as a table keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from collectors.shared.symbols.kernels import Kernel


def kernels_table(kernels: Sequence[Kernel]) -> pl.DataFrame:
    """Rows of ``kernels``, without ``pass``, numbered in their order."""
    return pl.DataFrame(
        {
            "kernel": pl.Series(range(len(kernels)), dtype=pl.Int32),
            "domain": pl.Series([kernel.domain.value for kernel in kernels], dtype=pl.String),
            "library": pl.Series([kernel.library for kernel in kernels], dtype=pl.String),
            "name": pl.Series([kernel.name for kernel in kernels], dtype=pl.String),
            "full_name": pl.Series([kernel.full_name for kernel in kernels], dtype=pl.String),
            "address": pl.Series([kernel.address for kernel in kernels], dtype=pl.Int64),
        }
    )
