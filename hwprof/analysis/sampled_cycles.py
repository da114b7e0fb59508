"""CPI where nothing counts cycles: operands of formulas, of layers, layer types and stages, from ``kernel_cpi``; and
why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from hwprof.analysis.kernel_cpi import CpiByTime
from hwprof.analysis.more_samples import more_samples
from hwprof.analysis.no_cpi import FEW, WIDE
from hwprof.analysis.owners import INFERENCE, WHOLE, is_rest
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN
from hwprof.hardware.metrics import SAMPLED_OPERANDS
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.sampled_cpi import KernelCpi
    from hwprof.analysis.sampled_pass import SampledPass

NEGLIGIBLE: Final = 0.01
"""With a smaller share of the samples in leaf layers at work these are not what takes time, and no frequency helps."""

NONE_MET: Final = 20
"""So many samples elsewhere, and none of these: they are less than a seventh (95%), and more samples would be elsewhere
too."""

SOME: Final = 3
"""So many of uninstrumented threads, and none of the others, are no chance: if those did half of the work, 1 in 8."""

UNINSTRUMENTED: Final = "in leaf layers on threads that are not instrumented (the model's own)"


@dataclass(frozen=True)
class SampledCycles:
    """Operands of metrics, one row an owner: leaf layers, their types, and the inference (the other stages have no
    layers)."""

    layers: pl.DataFrame
    layer_types: pl.DataFrame
    stages: pl.DataFrame


def sampled_cycles(cpi: CpiByTime, modules: pl.DataFrame) -> SampledCycles:
    """``modules`` is the table ``layers``."""
    types = modules.filter("leaf").unique("path", keep="first").select(layer="path", owner="type")
    by_layer = _operands(cpi.layers.rename({"layer": "owner"}))
    return SampledCycles(
        layers=pl.concat([by_layer, _whole(cpi, WHOLE)]),
        layer_types=_operands(cpi.together(types)),
        stages=_whole(cpi, INFERENCE),
    )


def why_none(sampled: SampledPass, found: KernelCpi | None) -> Unavailable | None:
    """Why no layer has a CPI though samples were taken; None where one has."""
    if found is None:
        return Unavailable(
            f"pass {sampled.record.name} took samples, and no instrumented pass did the same work",
            "collect with --passes measure,trace,instrumented",
        )
    cpi = found.by_time
    layers = cpi.layers
    if pl.concat([layers["reason"], cpi.together(_all(cpi, WHOLE))["reason"]]).has_nulls():
        return None
    other = layers.filter(~pl.col("reason").is_in([FEW, WIDE]))
    if other.height == layers.height and other.height:
        return Unavailable(f"of every layer: {', '.join(other['reason'].unique(maintain_order=True))}")
    number = int(layers["samples"].sum())
    return elsewhere(cpi) or Unavailable(
        f"{number} of {sampled.inside.height} samples in leaf layers at work: too few", more_samples(sampled, number)
    )


def elsewhere(cpi: CpiByTime) -> Unavailable | None:
    """Where the samples lie instead, if next to none is of instrumented leaf layers at work; None where more samples
    would do. There is no remedy: another sampling brings other code into no layer."""
    domain = pl.col("domain")
    own, waits = is_rest(pl.col("layer").cast(pl.String)), domain.eq_missing(pl.lit(WAITING_DOMAIN))
    numbers = cpi.by_layer.group_by(
        place=pl.when(own)
        .then(pl.lit("in own code, between leaf layers"))
        .when(waits)
        .then(pl.lit("waiting in leaf layers"))
        .when(domain.eq_missing(pl.lit("kernel")))
        .then(pl.lit("the kernel's code in leaf layers"))
        .when(pl.col("layer").cast(pl.String).is_in(cpi.layers["layer"].to_list()))
        .then(pl.lit(None, pl.String))
        .otherwise(pl.lit(UNINSTRUMENTED))
    ).agg(pl.col("samples").sum())
    met: dict[str | None, int] = dict(numbers.select("place", "samples").iter_rows())
    of_all, number = sum(met.values()), met.pop(None, 0)
    negligible = NEGLIGIBLE * of_all >= max(1.0, number) or (not number and of_all >= NONE_MET)
    uninstrumented = not number and met.get(UNINSTRUMENTED, 0) >= SOME
    if not met or not (negligible or uninstrumented):
        return None
    place, most = max(met.items(), key=lambda pair: pair[1])
    return Unavailable(
        f"{number:,} of {of_all:,} samples are in leaf layers at work in instrumented code; {most:,} are {place}"
    )


def _all(cpi: CpiByTime, owner: str) -> pl.DataFrame:
    return cpi.layers.select("layer", owner=pl.lit(owner))


def _whole(cpi: CpiByTime, owner: str) -> pl.DataFrame:
    return _operands(cpi.together(_all(cpi, owner)))


def _operands(rows: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("reason").is_null()
    figures = (pl.when(known).then(pl.col(name).cast(pl.Float64)) for name in ("cycles", "instructions"))
    return rows.select("owner", **dict(zip(SAMPLED_OPERANDS, figures, strict=True)))
