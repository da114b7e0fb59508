"""Time budgets of several layers together: of the modules around them, with all that is in them, and of those that are
alike. As that of the inference they are by all samples there, also those of layers that are too short to be told
alone."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from hwprof.analysis.owners import ROOT, own
from hwprof.analysis.thread_states import closed
from hwprof.analysis.thread_times import ThreadTimes
from hwprof.analysis.time_budget import budget, callers_rows, with_parts


def block_budgets(times: ThreadTimes, layers: pl.DataFrame) -> pl.DataFrame:
    """In ``time_budget.SCHEMA``, without intervals; ``layers``: the run's.

    The time of a module whose layers run on several threads of the model's own goes by once.
    """
    inside = _inside(times.callers_elapsed["layer"].unique(maintain_order=True).to_list(), layers)
    calls, moments = callers_rows(times), with_parts(times, times.moments)
    of_callers, of_all = (_mapped(rows, inside) for rows in (times.callers_elapsed, times.elapsed))
    found = closed(_mapped(calls, inside), of_callers, ["layer"]).join(
        _once(times, of_callers, of_all), on="layer", how="left", maintain_order="left"
    )
    found = found.with_columns(pl.col("ns") * pl.col("once").fill_null(1.0)).drop("once")
    rows = budget(times, found, closed(_mapped(moments, inside), of_all, ["layer"]))
    return rows.with_columns(pl.lit(None, pl.Float64).alias(end) for end in ("share_low", "share_high"))


def alike_budgets(times: ThreadTimes, groups: Sequence[Sequence[str]]) -> pl.DataFrame:
    """In ``time_budget.SCHEMA``; ``groups`` of layers, each told by the name of its first. A sum of budgets would be
    one of those layers alone that were met often enough, which are those that something held up."""
    pairs = [(group[0], path) for group in groups for path in group]
    inside = pl.DataFrame(pairs, schema={"module": pl.String, "layer": pl.String}, orient="row")
    calls, moments = (_mapped(rows, inside) for rows in (callers_rows(times), with_parts(times, times.moments)))
    own = closed(calls, _mapped(times.callers_elapsed, inside), ["layer"])
    return budget(times, own, closed(moments, _mapped(times.elapsed, inside), ["layer"]))


def _inside(owners: list[str], layers: pl.DataFrame) -> pl.DataFrame:
    """``module`` and ``layer``: whose time is the module's, too."""
    modules = layers.filter(~pl.col("leaf"))["path"].unique(maintain_order=True)
    pairs = [(path, owner) for path in modules for owner in owners if _lies_in(owner, path)]
    return pl.DataFrame(pairs, schema={"module": pl.String, "layer": pl.String}, orient="row")


def _lies_in(owner: str, path: str) -> bool:
    return owner == own(path) or path == ROOT or owner.startswith(f"{path}.")


def _mapped(rows: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """Each row once for every module, or group, that it lies in."""
    found = rows.join(inside, on="layer", how="inner", maintain_order="left")
    return found.with_columns(layer="module").drop("module")


def _once(times: ThreadTimes, of_callers: pl.DataFrame, of_all: pl.DataFrame) -> pl.DataFrame:
    """``layer`` (a module) and ``once``: of the time of the threads that call its layers, the part in which it goes by;
    of modules in which threads of the model's own begin."""
    begun = times.taken.spans.filter((pl.col("kind") == "layer") & pl.col("parent").is_null())["path"].unique()
    threads = [path for path in of_callers["layer"].unique() if any(_begins_in(one, path) for one in begun)]
    wall, callers = (rows.group_by("layer").agg(pl.col("elapsed_ns").sum()) for rows in (of_all, of_callers))
    both = wall.join(callers, on="layer", suffix="_of_callers").filter(pl.col("layer").is_in(threads))
    return both.select("layer", once=pl.col("elapsed_ns") / pl.col("elapsed_ns_of_callers").replace(0, None))


def _begins_in(path: str, module: str) -> bool:
    """Whether a module that no other calls on its thread lies in that one."""
    return path != module and (module == ROOT or path.startswith(f"{module}."))
