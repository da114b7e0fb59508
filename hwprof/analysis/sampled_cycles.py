"""CPI where nothing counts cycles: operands of formulas, of layers, layer types and stages, from ``kernel_cpi``."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.kernel_cpi import KEYS
from hwprof.analysis.owners import INFERENCE, WHOLE
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.hardware.metrics import SAMPLED_OPERANDS


def of_layers(cpi: pl.DataFrame) -> pl.DataFrame:
    """One row a leaf layer, and ``WHOLE``; ``cpi``: as ``kernel_cpi`` makes it."""
    rows = _of_layers(cpi)
    return _operands(rows.with_columns(owner=pl.col("layer").cast(pl.String).fill_null(WHOLE)))


def of_layer_types(cpi: pl.DataFrame, modules: pl.DataFrame) -> pl.DataFrame:
    """One row a type of leaf layers; ``modules`` is the table ``layers``."""
    types = modules.filter("leaf").unique("path", keep="first").select(layer="path", owner="type")
    rows = _of_layers(cpi).with_columns(pl.col("layer").cast(pl.String)).join(types, on="layer")
    return _operands(rows.group_by("owner").agg(pl.col("samples", "cycles", "instructions").sum()))


def of_stages(cpi: pl.DataFrame) -> pl.DataFrame:
    """The inference: the other stages have no layers."""
    return _operands(_of_layers(cpi).filter(pl.col("layer").is_null()).with_columns(owner=pl.lit(INFERENCE)))


def _of_layers(cpi: pl.DataFrame) -> pl.DataFrame:
    return cpi.filter(pl.col(KEYS[0]).is_null())


def _operands(rows: pl.DataFrame) -> pl.DataFrame:
    enough = pl.col("samples") >= FEW_SAMPLES
    figures = (pl.when(enough).then(pl.col(name).cast(pl.Float64)) for name in ("cycles", "instructions"))
    return rows.select("owner", **dict(zip(SAMPLED_OPERANDS, figures, strict=True)))
