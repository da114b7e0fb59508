"""What the samples of a pass tell of each layer: processor time, threads and operators, how threads share its work."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from hwprof.analysis import parallelism, sampled_kernels
from hwprof.analysis.attribution import attribute
from hwprof.analysis.kernel_cpi import CpiByTime
from hwprof.analysis.owners import WHOLE
from hwprof.analysis.sampled_pass import CPI, FEW_FOR_SHARES, FIGURES, LEAST_SHARE, SampledPass, if_enough
from hwprof.run.schema import empty

MUCH_UNSAMPLED: Final = 0.1
"""Of a layer's work, by threads that are new, before they could be sampled: how threads share it is not known then."""


def layer_rows(taken: SampledPass, cpi: CpiByTime | None = None) -> list[dict[str, Any]]:
    """The sampled layers, most processor time first: ``path``, the figures, and the lists ``threads`` and
    ``operators``. ``cpi`` as for ``kernel_rows``."""
    number = len(taken.iterations)
    by_thread = parallelism.threads_by_layer(taken.inside)
    off = parallelism.off_cpu(taken.switches, taken.spans, taken.modules, taken.iterations)
    by_lane = parallelism.threads_by_layer(taken.inside.with_columns(_lane(taken)))
    of_working = _of_those_that_work(taken, off, by_lane)
    sums = of_working.group_by("layer").agg(pl.col("off_cpu_ns", "preempted_ns").sum() / number)
    enough = pl.col("samples") >= FEW_FOR_SHARES
    frame = (
        sampled_kernels.widened(sampled_kernels.layer_table(taken.inside), taken.unsampled_ns)
        .join(_balance(taken, by_lane), on="layer", how="left", maintain_order="left")
        .join(sums, on="layer", how="left", maintain_order="left")
        .with_columns(
            pl.col("off_cpu_ns", "preempted_ns").fill_null(_never_off(taken)),
            pl.col("cpu_ns") / number,
            *(pl.when(enough).then(name).alias(name) for name in ("wait_share", "efficiency")),
            *if_enough("cpi", "llc_mpki"),
        )
    )
    frame = taken.with_cpi(frame, cpi.layers if cpi is not None else None, ["layer"])
    columns = [*FIGURES, *CPI, "llc_mpki", "named_share", "wait_share", "efficiency", "imbalance",
               "threads_sharing", "unsampled_share", "off_cpu_ns", "preempted_ns"]  # fmt: skip
    threads, operators = _threads(taken, by_thread, off, of_working), _operators(taken)
    return [
        {**row, "threads": threads.get(row["path"], []), "operators": operators.get(row["path"], [])}
        for row in frame.select(*columns, path="layer").iter_rows(named=True)
    ]


def _lane(taken: SampledPass) -> pl.Expr:
    """In the place of a thread its lane."""
    return pl.col("tid").replace(taken.lanes)


def _of_those_that_work(taken: SampledPass, off: pl.DataFrame, by_lane: pl.DataFrame) -> pl.DataFrame:
    """Absences of the threads that work in the inference: others sleep through it, which is no loss. Where they are
    more at a time than the workload runs with, a pool of the model's own, those of a layer are the ones that share
    it."""
    placed = off.with_columns(lane=_lane(taken))
    each = taken.inside.group_by(lane=_lane(taken)).agg(pl.col("cpu_ns").sum())
    working = each.filter(pl.col("cpu_ns") >= parallelism.WORKS * pl.col("cpu_ns").max())
    if taken.threads is None or working.height <= taken.threads:
        return placed.join(working, on="lane", how="semi").drop("lane")
    sharing = parallelism.sharing(by_lane, taken.threads).select("layer", lane="tid")
    return placed.join(sharing, on=["layer", "lane"], how="semi").drop("lane")


def _balance(taken: SampledPass, by_lane: pl.DataFrame) -> pl.DataFrame:
    """Efficiency and imbalance by layer."""
    times = attribute(taken.spans, empty("counts"), taken.modules, taken.record, disturbed_too=True).times
    kept = times.filter(pl.col("iteration").is_in(list(taken.iterations)) & (pl.col("owner") != WHOLE))
    wall = kept.group_by(layer="owner").agg(pl.col("time_ns").sum())
    if taken.threads is None:
        unknown = {name: pl.lit(None, pl.Float64) for name in ("unsampled_share", "efficiency", "imbalance")}
        return wall.select("layer", **unknown, threads_sharing=pl.lit(None, pl.Int64))
    found = parallelism.parallelism(by_lane, wall, taken.threads).join(_unsampled(taken), on="layer", how="left")
    known = pl.col("unsampled_share").fill_null(0.0) < MUCH_UNSAMPLED
    return found.select(
        "layer",
        "unsampled_share",
        *(pl.when(known).then(name).alias(name) for name in ("efficiency", "imbalance")),
        threads_sharing="threads",
    )


def _unsampled(taken: SampledPass) -> pl.DataFrame:
    """``layer`` and ``unsampled_share``: how much of its work threads that are new may have done from their beginning
    to their first sample, milliseconds in which they cannot be sampled yet."""
    firsts = taken.inside.sort("time_ns").unique("tid", keep="first").join(taken.lives, on="tid")
    before = pl.col("time_ns") - pl.col("cpu_ns") - pl.col("begin_ns")
    of_these = firsts.filter(pl.col("begin_ns") > taken.inside["time_ns"].min())  # others were there, and slept
    leads = of_these.group_by("layer").agg(before_ns=before.clip(lower_bound=0).sum())
    busy = parallelism.threads_by_layer(taken.inside).group_by("layer").agg(pl.col("busy_ns").sum())
    both = busy.join(leads.with_columns(pl.col("layer").cast(pl.String)), on="layer")
    whole_ns = (pl.col("before_ns") + pl.col("busy_ns")).replace(0, None)
    return both.select("layer", unsampled_share=pl.col("before_ns") / whole_ns)


def _never_off(taken: SampledPass) -> pl.Expr:
    """Time off a processor of which there is no row: none, unless nobody recorded any."""
    return pl.lit(0.0 if taken.switches.height else None, pl.Float64)


def _threads(
    taken: SampledPass, by_thread: pl.DataFrame, off: pl.DataFrame, of_working: pl.DataFrame
) -> dict[str, list[dict[str, Any]]]:
    """Those that were sampled in the layer, and those whose absences are its own: ``off`` has everyone's, of threads
    that sleep through the inference too."""
    on_cpu, off_cpu, keys = ("busy_ns", "wait_ns"), ("off_cpu_ns", "preempted_ns"), ["layer", "tid"]
    listed = pl.concat([by_thread.select(keys), of_working.select(keys)]).unique()
    frame = (
        listed.join(by_thread.drop("busy_samples"), on=keys, how="left")
        .join(off.select(*keys, *off_cpu), on=keys, how="left")
        .join(taken.known_threads.select("tid", "name"), on="tid", how="left")
        .with_columns(pl.col("samples", *on_cpu).fill_null(0))
        .with_columns(pl.col(*on_cpu, *off_cpu) / len(taken.iterations))
        .with_columns(pl.col(off_cpu).fill_null(_never_off(taken)))
        .sort("layer", "tid")
    )
    roles = pl.Series("role", [taken.role(tid) for tid in frame["tid"]], pl.String)
    return _lists(frame.with_columns(roles))


def _operators(taken: SampledPass) -> dict[str, list[dict[str, Any]]]:
    if taken.inside["operator"].null_count() == taken.inside.height:
        return {}
    rows = sampled_kernels.operators_by_layer(taken.inside).filter(pl.col("share") >= LEAST_SHARE)
    return _lists(rows.select("layer", "operator", "samples", "share"))


def _lists(frame: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The rows of each layer, in order, without its name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault(row.pop("layer"), []).append(row)
    return found
