"""What rules look at in a run's threads: how many were ready at a time, on which processors, how they shared the work,
and how much of the time Python had (fields of ``findings.facts.Facts``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hwprof.analysis.core_clock import quarters
from hwprof.analysis.findings.facts import Clock, Share
from hwprof.analysis.intervals import wilson
from hwprof.analysis.parallelism import FEW_FOR_BALANCE, SINGLE, sharing, threads_by_layer
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN
from hwprof.analysis.sampled_pass import SampledPass
from hwprof.analysis.states import PREEMPTED
from hwprof.analysis.team import CALLING, OTHER

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis
    from hwprof.analysis.thread_times import ThreadTimes
    from hwprof.run.manifest import Machine

READY: Final = ("busy_ns", "waiting_ns", "unsampled_ns", f"{PREEMPTED}_ns")
"""States of a thread that runs or would: waiting in the OpenMP runtime on a processor takes one as well."""

WINDOW_NS: Final = 10_000_000
"""Threads with samples in the same window ran at the same time: ten samples of each at the usual rate."""

PYTHON: Final = "python"
"""The domain of the interpreter's code."""

TWO_SIDED_95: Final = 1.96


def thread_facts(analysis: RunAnalysis) -> dict[str, Any]:
    """Of the pass that the samples are of; nothing where its calling thread was not sampled."""
    times, taken = analysis.thread_times, analysis.sampled
    if times is None or taken is None:
        return {}
    return {
        **_at_a_time(times),
        **placement(_of_team(times), analysis.machine),
        **_balance(taken),
        "python": _python(times),
        "clock": _clock(analysis),
    }


def processors(machine: Machine) -> int:
    """That the workload might use at a time: by its affinity, and by its control group's limit."""
    limit = math.ceil(machine.cpu_limit) if machine.cpu_limit else machine.usable_processors
    return max(1, min(machine.usable_processors, limit))


def _at_a_time(times: ThreadTimes) -> dict[str, Any]:
    """``ready``, ``other_threads`` and ``team_preempted``."""
    ready_ns, preempted_ns, others = 0.0, 0.0, dict[str, float]()
    for one in times.by_thread:
        ready_ns += sum(one[state] for state in READY) * one["iterations"]
        if one["role"] == OTHER:
            name = one["name"] or "a thread"
            others[name] = others.get(name, 0.0) + one["busy_ns"] * one["iterations"] / times.elapsed_ns
        elif one["role"] != CALLING:
            preempted_ns += one[f"{PREEMPTED}_ns"] * one["iterations"]
    return {
        "ready": ready_ns / times.elapsed_ns,
        "other_threads": others,
        "team_preempted": preempted_ns / times.elapsed_ns,
    }


def _of_team(times: ThreadTimes) -> pl.DataFrame:
    """The samples of those that share the work, while they are at work."""
    sharing_tids = [one["tid"] for one in times.those_that_share]
    return times.taken.inside.filter(pl.col("tid").is_in(sharing_tids) & pl.col("code").ne_missing(WAITING_DOMAIN))


def placement(samples: pl.DataFrame, machine: Machine) -> dict[str, Any]:
    """``cores``, ``shared_core``, ``nodes``, ``node_cores``. ``samples``: ``time_ns``, ``tid``, ``cpu`` and ``cpu_ns``
    of a team at work."""
    cores = min(machine.physical_cores, processors(machine)) if machine.physical_cores else None
    whole_ns = float(samples["cpu_ns"].sum())
    if not whole_ns:
        return {"cores": cores}
    found: dict[str, Any] = {"cores": cores}
    if any(len(group) > 1 for group in machine.siblings):
        rows = samples.with_columns(core=_group_of(machine.siblings), window=pl.col("time_ns") // WINDOW_NS)
        both = (pl.col("cpu").n_unique() > 1) & (pl.col("tid").n_unique() > 1)
        shared = rows.filter(both.over("window", "core"))["cpu_ns"].sum()
        found["shared_core"] = float(shared) / whole_ns
    if len(machine.nodes) > 1:
        by_node = samples.group_by(_group_of(machine.nodes).alias("node")).agg(pl.col("cpu_ns").sum())
        found["nodes"] = sorted((float(ns) / whole_ns for ns in by_node["cpu_ns"]), reverse=True)
        found["node_cores"] = min(_cores_in(node, machine.siblings) for node in machine.nodes)
    return found


def _group_of(groups: Sequence[Sequence[int]]) -> pl.Expr:
    """The number of the group that the processor is in; its own, negative, where it is in none."""
    known = {cpu: number for number, group in enumerate(groups) for cpu in group}
    return pl.col("cpu").replace_strict(known, default=-1 - pl.col("cpu"), return_dtype=pl.Int32)


def _cores_in(node: Sequence[int], siblings: Sequence[Sequence[int]]) -> int:
    return sum(any(cpu in node for cpu in core) for core in siblings) or len(node)


def _balance(taken: SampledPass) -> dict[str, Any]:
    """``serial`` and ``imbalance``: the latter by the lower end of its 95% interval, as far as samples are draws."""
    if taken.threads is None or taken.threads < 2:
        return {}
    by_lane = threads_by_layer(taken.inside.with_columns(pl.col("tid").replace(taken.lanes)))
    busy = pl.col("busy_ns")
    rows = (
        sharing(by_lane, taken.threads)
        .group_by("layer")
        .agg(most=busy.max() / busy.sum(), draws=pl.col("busy_samples").sum(), threads=pl.col("threads").first())
        .filter(pl.col("draws") >= FEW_FOR_BALANCE)
    )
    error = TWO_SIDED_95 * (pl.col("most") * (1 - pl.col("most")) / pl.col("draws")).sqrt()
    least = rows.select("layer", ((pl.col("most") - error) * pl.col("threads") - 1).alias("imbalance"))
    return {
        "serial": rows.filter(pl.col("most") >= SINGLE)["layer"].sort().to_list(),
        "imbalance": dict(least.filter(pl.col("imbalance") > 0).sort("layer").iter_rows()),
    }


def _python(times: ThreadTimes) -> Share:
    """The interpreter's code on the calling thread, of the elapsed time."""
    own = times.taken.inside.filter(tid=times.calling_tid)
    share = min(1.0, float(own.filter(code=PYTHON)["cpu_ns"].sum()) / times.elapsed_ns)
    low, high = wilson(share, own.height)
    return Share(share, low, high)


def _clock(analysis: RunAnalysis) -> Clock | None:
    """Of the main pass; where it was not probed there, of the sampled one."""
    for record in (analysis.main, analysis.sampled.record if analysis.sampled else None):
        found = quarters(record, analysis.of_pass("series", record)) if record is not None else None
        if found is not None:
            return Clock(*(Share(*quarter) for quarter in found))
    return None
