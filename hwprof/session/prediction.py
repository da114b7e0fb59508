"""How long a slow pass will take, from how long the same work took uninstrumented."""

from __future__ import annotations

import polars as pl

from hwprof.run.directory import RunDirectory
from hwprof.session.plan import PassPlan

ROUND_S = 10


def prediction(run: RunDirectory, plan: PassPlan) -> str:
    """In words, to be put behind a phase; nothing where the pass is not slow or its companion was not completed."""
    companion = run.find_pass(plan.times_from) if plan.slow and plan.times_from is not None else None
    measured = [one.index for one in companion.iterations if not one.warmup] if companion else []
    if companion is None or not measured or not companion.measured_ns:
        return ""
    done = len(measured) + sum(one.bare for one in companion.iterations)
    leaves = run.scan("layers").filter("leaf").select("path")
    spans = run.scan_pass("spans", companion.name).filter(pl.col("iteration") == measured[-1])
    calls = spans.filter(pl.col("kind") == "layer").join(leaves, on="path", how="semi").select(pl.len()).collect()
    once_s = companion.measured_ns / done / 1e9
    return words(plan.startup_s + plan.slowdown * once_s * plan.iterations + plan.call_s * calls.item())


def words(seconds: float) -> str:
    """Roughly: `` (the pass takes about 40 s)``."""
    if seconds < 90:
        return f" (the pass takes about {max(ROUND_S, round(seconds / ROUND_S) * ROUND_S)} s)"
    return f" (the pass takes about {round(seconds / 60)} min)"
