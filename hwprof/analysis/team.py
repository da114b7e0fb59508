"""Which threads work for the thread that calls the model: its OpenMP team. What the others do is no operator of the
calling thread's, whichever one runs on it meanwhile."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.sampled_kernels import WAITING_DOMAIN
from hwprof.analysis.states import TEAM_WAITS

CALLING, TEAM, OTHER = "calling", "team", "other"
"""Roles of threads."""


def team(samples: pl.LazyFrame, kernels: pl.LazyFrame, switches: pl.LazyFrame) -> frozenset[int]:
    """The threads that wait for one another in the OpenMP runtime, on a processor or off it; all tables are one
    pass's, with all of its rows."""
    waiting = kernels.filter(pl.col("domain") == WAITING_DOMAIN).select("kernel")
    on = samples.join(waiting, on="kernel", how="semi").select("tid")
    off = switches.filter(pl.col("reason").is_in(TEAM_WAITS)).select("tid")
    return frozenset(pl.concat([on, off]).unique().collect()["tid"].to_list())


def role(tid: int, calling_tid: int | None, of_team: frozenset[int]) -> str:
    """Of a thread of the pass."""
    return CALLING if tid == calling_tid else TEAM if tid in of_team else OTHER
