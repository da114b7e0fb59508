"""Counted FLOPs against analytic ones, layer by layer: the ratio, and why it is off where it is.

The two come from independent sources, hardware events and the layers' shapes, so where they agree both can be believed.
Rules and thresholds are data (``flop_check.toml``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
import polars as pl

from hwprof.analysis.convolutions import convolution, of_geometry
from hwprof.analysis.layers import Figures
from hwprof.analysis.owners import OWN, UNATTRIBUTED, WHOLE
from hwprof.data_files import read_toml

COUNTED: Final = "counted_flops"
"""The metric that the check is about."""

HINTS: Final = ("amx_busy", "vnni_share")
"""Metrics that explain a layer's ratio."""

INTEGER_OPERATIONS: Final = ("instrumented.operations-int8", "instrumented.operations-int16")
"""What instrumented code counts of products that are no FLOPs."""

INSTRUMENTED: Final = "instrumented."
"""How the names of events begin that instrumented code counted."""

SPECULATIVE: Final = "_spec"
"""In the names of Arm's events that count what is not retired, too."""

AGREES: Final = "agrees"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reason, and the bounds of the figures for which it holds."""

    name: str
    when: dict[str, tuple[float, float]]
    reason: str
    expected: bool = False

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Whether every bounded figure is known and within its bounds."""
        return all(name in figures and low <= figures[name] <= high for name, (low, high) in self.when.items())


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file ``flop_check.toml``."""

    agreement: tuple[float, float]
    recurrent: tuple[str, ...]
    rule: tuple[Rule, ...]


@dataclass(frozen=True, kw_only=True)
class FlopCheck:
    """One layer's FLOPs of one iteration. ``ratio`` is counted / analytic, null without MACs."""

    counted: float
    analytic: float
    ratio: float | None
    verdict: str  # "agrees", or the name of the rule that explains it
    expected: bool  # it agrees, or differs for a reason in the nature of the layer
    reason: str | None


@cache
def rules() -> Rules:
    """The reasons that are known, in the order in which they are tried."""
    return read_toml(__name__, "flop_check.toml", Rules)


def flop_checks(layers: Figures, calls: pl.DataFrame, events: Collection[str]) -> dict[str, FlopCheck]:
    """The check of every leaf layer that has counted FLOPs, by path, and of the sum of them as ``WHOLE``.

    ``layers``: as ``layer_table`` makes it. ``calls``: the run's ``layer_calls``. ``events``: what the FLOPs were
    counted with. Layers without counted FLOPs
    and without MACs are left out; the sum is over the layers that have MACs.
    """
    if COUNTED not in layers.metrics.columns:
        return {}
    hints = [name for name in HINTS if name in layers.metrics.columns]
    shares = layers.counters.filter(pl.col("event").is_in(list(events))).group_by("owner")
    table = (
        layers.rows.filter(~pl.col("owner").is_in([UNATTRIBUTED, WHOLE]))
        .join(layers.metrics.select("owner", COUNTED, *hints), on="owner", how="left", maintain_order="left")
        .join(shares.agg(pl.col("running_share").min()), on="owner", how="left", maintain_order="left")
        .join(_integer_operations(layers.counters), on="owner", how="left", maintain_order="left")
    )
    how = {
        "speculative": float(any(SPECULATIVE in event for event in events)),
        "instrumented": float(bool(events) and all(event.startswith(INSTRUMENTED) for event in events)),
    }
    by_path: dict[str, list[dict[str, Any]]] = {}
    for call in calls.iter_rows(named=True):
        by_path.setdefault(call["path"], []).append(call)
    found = {}
    for row in table.iter_rows(named=True):
        if row[COUNTED] is None or not (row[COUNTED] or row["macs"]):
            continue
        known = {name: row[name] for name in (*hints, "running_share", "integer_operations") if row[name] is not None}
        of_kind = how | {
            "own": float(row["owner"].endswith(OWN)),
            "recurrent": float(row["type"] in rules().recurrent),
        }
        figures = known | shape_figures(row["type"], by_path.get(row["owner"], []), row.get("convolution")) | of_kind
        found[row["owner"]] = check(row[COUNTED], row["macs"] or 0, figures)
    compared = [layer for layer in found.values() if layer.ratio is not None]
    if compared and not layers.irregular:
        counted, analytic = sum(layer.counted for layer in compared), sum(layer.analytic for layer in compared)
        agrees = _within(counted / analytic, rules().agreement)
        found[WHOLE] = FlopCheck(
            counted=counted,
            analytic=analytic,
            ratio=counted / analytic,
            verdict=AGREES if agrees else "differs",
            expected=all(layer.expected for layer in compared),
            reason=None,
        )
    return found


def _integer_operations(counters: pl.DataFrame) -> pl.DataFrame:
    """``owner`` and ``integer_operations``, of one iteration, where they were counted."""
    counted = counters.filter(pl.col("event").is_in(INTEGER_OPERATIONS)).group_by("owner")
    return counted.agg(integer_operations=pl.col("value").sum())


def check(counted: float, macs: float, figures: Mapping[str, float]) -> FlopCheck:
    """One layer's check; ``figures`` are those of ``flop_check.toml`` that are known beside ``macs`` and ``ratio``, and
    ``integer_operations``.

    Pure: the same figures give the same verdict.
    """
    analytic = 2.0 * macs
    known = {**figures, "macs": float(macs)}
    ratio = counted / analytic if macs else None
    if ratio is not None:
        known["ratio"] = ratio
        if _within(ratio, rules().agreement):
            return _verdict(counted, analytic, ratio, AGREES, None, expected=True)
        if "integer_operations" in known:
            known["integer"] = known["integer_operations"] / analytic
            known["executed"] = ratio + known["integer"]
        if "inside" in known:
            known["outside"] = 1 - known["inside"]
            known["unpadded"] = ratio / known["inside"] if known["inside"] else math.inf
        if "rounding" in known:
            known["rounded"] = ratio / known["rounding"]
        if known.get("elements"):
            known["beside"] = (counted - analytic) / known["elements"]
    rule = next((rule for rule in rules().rule if rule.holds(known)), None)
    assert rule is not None, "the last rules take every ratio"
    return _verdict(counted, analytic, ratio, rule.name, rule.reason.format(**known), expected=rule.expected)


def shape_figures(
    kind: str | None, calls: Sequence[Mapping[str, Any]], geometry: str | None = None
) -> dict[str, float]:
    """What the calls of a layer in one iteration (rows of ``layer_calls``) tell by their shapes: the output's elements
    and a convolution's geometry, shares by its products where its calls have several sizes. ``geometry``: as the table
    ``layers`` has it; runs of older versions have none."""
    figures: dict[str, float] = {}
    sizes = [call["output_shapes"].split("x") for call in calls if call["output_shapes"]]
    if calls and len(sizes) == len(calls) and all(size.isdigit() for shape in sizes for size in shape):
        figures["elements"] = float(sum(math.prod(map(int, shape)) for shape in sizes))
    if geometry is not None:
        made = [of_geometry(geometry, call["input_shapes"], call["output_shapes"]) for call in calls]
    elif kind == "Conv2d":
        made = [convolution(call["input_shapes"], call["output_shapes"], call["macs"] or 0) for call in calls]
    else:
        return figures
    known = [found for found in made if found is not None]
    products = sum(call["macs"] or 0 for call in calls)
    if not products or len(known) < len(calls):
        return figures
    for name in ("kernel", "stride", "groups", "dilation", "dimensions"):
        values = {getattr(found, name) for found in known}
        if len(values) == 1 and None not in values:
            figures[name] = float(getattr(known[0], name))
    for name in ("inside", "rounding"):
        weighed = sum(getattr(found, name) * call["macs"] for found, call in zip(known, calls, strict=True))
        figures[name] = weighed / products
    return figures


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


def _verdict(
    counted: float, analytic: float, ratio: float | None, verdict: str, reason: str | None, *, expected: bool
) -> FlopCheck:
    return FlopCheck(counted=counted, analytic=analytic, ratio=ratio, verdict=verdict, expected=expected, reason=reason)
