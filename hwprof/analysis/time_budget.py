"""Where a layer's time goes: shares of its elapsed time, and of the time of all threads that share its work.

Elapsed time is that of the calling thread: of each layer the one that calls it, which is the one that calls the model
unless the model has threads of its own. Layers that run at the same time on several threads have each all of theirs; of
the inference, and of the modules around them, the time goes by once. What it did meanwhile: by its samples on a
processor and by its switches off it (``thread_states``: they add up to the elapsed time). Every sample has one part, by
the code that it met (``time_budget.toml``); every time off a processor one, by what the thread waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import msgspec
import polars as pl

from hwprof.analysis import waiting
from hwprof.analysis.implementations import is_reorder
from hwprof.analysis.sampled_kernels import KERNEL_DOMAIN
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.states import ABSENT, BARRIER, BUSY, PREEMPTED, STOPPED, UNKNOWN, UNSAMPLED
from hwprof.analysis.statistics import wilson
from hwprof.analysis.thread_states import closed
from hwprof.analysis.thread_times import ThreadTimes
from hwprof.data_files import read_toml

EXACT: Final = 1e-9
"""What shares, of floats, differ by and are the same."""

COMPUTE: Final = "compute"
LAYOUT: Final = "layout"
WAITING: Final = "waiting"
BLOCKED: Final = "blocked"
OTHER: Final = "other"
PAGE_FAULTS: Final = "page_faults"
ALLOCATION: Final = "allocation"
PARTS: Final = (COMPUTE, LAYOUT, PAGE_FAULTS, ALLOCATION, WAITING, "dispatch", BLOCKED, PREEMPTED, OTHER)
"""In the order in which they are told.

- compute: the kernels that do the layer's own work
- layout: kernels that change layouts or copy for another operator
- page_faults: the kernel clears new pages and maps them
- allocation: malloc, free, and giving pages back
- waiting: for the team: barriers, spinning
- dispatch: Python and the framework between kernels, also for the interpreter's lock
- blocked: asleep, or waiting for a lock, a file, a process
- preempted: others had the processor
- other: profilers, interrupts, and what nobody knows
"""

SCHEMA: Final = pl.Schema(
    {
        "layer": pl.String,  # an owner of ``attribution``; null: the whole inference
        "part": pl.String,
        "ns": pl.Float64,  # of the elapsed time of an iteration, on average
        "share": pl.Float64,  # of the elapsed time; those of a layer add up to 1
        "share_low": pl.Float64,  # its 95% interval, by the calling thread's samples
        "share_high": pl.Float64,
        "samples": pl.Int64,  # of the calling thread, in this part
        "of_samples": pl.Int64,  # in all of them
        "threads_ns": pl.Float64,  # of the time of all threads that share the work
        "threads_share": pl.Float64,
    }
)

OFF_CPU: Final = {
    BARRIER: WAITING,
    PREEMPTED: PREEMPTED,
    "GIL": "dispatch",
    "page fault": PAGE_FAULTS,
    "memory map": ALLOCATION,
    STOPPED: OTHER,
    UNSAMPLED: OTHER,
    UNKNOWN: OTHER,
}
"""By what a thread was off its processor for; anything else is ``BLOCKED``."""

UNRECORDED: Final = ""
"""The operator of threads of which nobody records any (``samples.attribute_samples``)."""

CAUSES: Final = {"GIL": "dispatch", "sleep": BLOCKED}
"""Of code that waits on a processor, by what for; anything else is ``WAITING``."""


class _Functions(msgspec.Struct, forbid_unknown_fields=True):
    part: str
    domains: tuple[str, ...]
    names: tuple[str, ...]


class _Copies(msgspec.Struct, forbid_unknown_fields=True):
    names: tuple[str, ...]
    own_work: frozenset[str]


class _Shared(msgspec.Struct, forbid_unknown_fields=True):
    names: tuple[str, ...]
    faults_domains: frozenset[str]
    faults_names: tuple[str, ...]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    default: dict[str, str]
    nameless: dict[str, str]
    function: tuple[_Functions, ...]
    copies: _Copies
    shared: _Shared


@cache
def _data() -> _File:
    return read_toml(__name__, "time_budget.toml", _File)


@cache
def part_of(
    domain: str | None,
    name: str | None,
    operator: str | None,
    entered_domain: str | None = None,
    entered_name: str | None = None,
) -> str:
    """Of code in a domain (of ``kernels``), with a function's name and the framework's operator that it ran in.
    ``entered_…``: of the function that was left for the kernel of the operating system."""
    known = _data()
    if domain is None or domain not in known.default:
        cause = waiting.cause(domain, name)
        return CAUSES.get(cause, WAITING) if cause is not None else OTHER
    cause = waiting.cause(domain, name)
    if cause is not None:
        return CAUSES.get(cause, WAITING)
    if is_reorder(name):
        return LAYOUT
    if name is None:
        return known.nameless.get(domain, OTHER)
    if _fits(name, known.copies.names):
        if operator == UNRECORDED:  # whose copy it is, nobody knows
            return OTHER
        return COMPUTE if operator in known.copies.own_work else LAYOUT
    for one in known.function:
        if domain in one.domains and _fits(name, one.names):
            return one.part
    if domain == KERNEL_DOMAIN and _fits(name, known.shared.names):
        return _entered_for(entered_domain, entered_name)
    return known.default[domain]


def _entered_for(domain: str | None, name: str | None) -> str:
    """What the kernel does for a function that was left for it, by what function that is."""
    shared = _data().shared
    if domain in shared.faults_domains or (domain == "system" and _fits(name or "", shared.faults_names)):
        return PAGE_FAULTS
    part = part_of(domain, name, None)
    return part if part == ALLOCATION else OTHER


def time_budget(times: ThreadTimes) -> pl.DataFrame:
    """One row a layer and part of which it has any, in ``SCHEMA``; the whole first, layers by time, parts by ``PARTS``.
    Layers with fewer than ``FEW_SAMPLES`` samples of the calling thread are left out, unless it was hardly there."""
    calls, moments = callers_rows(times), with_parts(times, times.moments)
    whole, wall = _whole(calls, times.callers_elapsed), float(times.elapsed["elapsed_ns"].sum())
    of_callers = float(times.callers_elapsed["elapsed_ns"].sum())
    whole = whole.with_columns(pl.col("ns") * (wall / of_callers if of_callers else 1.0))  # the time goes by once
    own = pl.concat([whole, closed(calls, times.callers_elapsed, ["layer"])], how="diagonal_relaxed")
    rows = pl.concat(
        [_whole(moments, times.elapsed), closed(moments, times.elapsed, ["layer"])], how="diagonal_relaxed"
    )
    return budget(times, own, rows)


def callers_rows(times: ThreadTimes) -> pl.DataFrame:
    """What the threads that call layers did (``with_parts``), as if one made all of the calls."""
    return with_parts(times, times.callers).with_columns(tid=pl.lit(times.calling_tid, pl.Int32))


def budget(times: ThreadTimes, own: pl.DataFrame, all_threads: pl.DataFrame) -> pl.DataFrame:
    """In ``SCHEMA``, of rows of ``closed``: what the threads that call did, and what all did."""
    own = _sums(own.with_columns(part=_part()), times.iterations)
    sharing = [one["tid"] for one in times.those_that_share]
    rows = all_threads.with_columns(part=_part())
    of_threads = rows.filter(pl.col("tid").is_in([times.calling_tid, *sharing]) & (pl.col("part") != ABSENT))
    threads = _sums(of_threads, times.iterations).select("layer", "part", threads_ns="ns", threads_share="share")
    both = own.join(threads, on=["layer", "part"], how="full", coalesce=True, nulls_equal=True)
    totals = both.group_by("layer").agg(
        of_samples=pl.col("samples").sum(), layer_ns=pl.col("ns").sum(), layer_off_ns=pl.col("off_ns").sum()
    )
    found = both.join(totals, on="layer", nulls_equal=True).with_columns(
        pl.col("ns", "off_ns", "share", "threads_ns", "threads_share").fill_null(0.0), pl.col("samples").fill_null(0)
    )
    low, high = _interval()
    hardly_there = pl.col("layer_off_ns") >= 0.9 * pl.col("layer_ns")
    enough = (pl.col("of_samples") >= FEW_SAMPLES) | hardly_there | pl.col("layer").is_null()
    order = pl.col("part").replace_strict({part: place for place, part in enumerate(PARTS)}, return_dtype=pl.Int64)
    return (
        found.filter(enough & (pl.col("layer_ns") > 0))
        .with_columns(share_low=low, share_high=high)
        .sort(pl.col("layer").is_not_null(), -pl.col("layer_ns"), "layer", order)
        .select(SCHEMA.names())
        .cast(SCHEMA)
    )


def awaited(times: ThreadTimes) -> dict[str | None, float]:
    """By layer, None: the inference: for how long (ns of an iteration, on average) the thread that calls the model was
    ``BLOCKED`` in what it called itself, and waited for another thread of the process that was not: one at work, or
    that others kept from it."""
    blocked = ~pl.col("sampled") & ~pl.col("state").is_in([*OFF_CPU, ABSENT])
    calls = times.callers.filter(blocked, tid=times.calling_tid).select("call").unique()  # not beside other threads
    other = (pl.col("on") != times.calling_tid) & pl.col("doing").is_in([BUSY, WAITING, *OFF_CPU])
    rows = times.path.filter(blocked & other).join(calls, on="call", how="semi")
    sums = rows.group_by("layer").agg(pl.col("ns").sum() / times.iterations).sort("layer")
    return {**dict(sums.iter_rows()), None: float(sums["ns"].sum())}


def without_awaited(budgets: list[dict[str, Any]], awaited_ns: Mapping[str | None, float]) -> list[dict[str, Any]]:
    """Budgets (``nested``) of whose ``BLOCKED`` is left what no other thread is behind (``awaited``)."""

    def left(budget: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
        least = awaited_ns.get(budget["path"], 0.0) / budget["elapsed_ns"] if part["part"] == BLOCKED else 0.0
        return {**part, **{name: max(0.0, part[name] - least) for name in ("share", "share_low", "share_high")}}

    return [{**one, "parts": [left(one, part) for part in one["parts"]]} for one in budgets]


def _interval() -> tuple[pl.Expr, pl.Expr]:
    """Of ``share``: what is off a processor is known to the nanosecond, by switches, and its share with it; samples
    tell how the rest is shared out."""
    off = pl.col("off_ns") / pl.col("layer_ns")
    on = 1 - pl.col("layer_off_ns") / pl.col("layer_ns")
    of_on = pl.when(on > 0).then((pl.col("share") - off) / on).otherwise(0.0).clip(0, 1)
    low, high = wilson(of_on, pl.col("of_samples").cast(pl.Float64).clip(1))
    known = (pl.col("share") - off).abs() <= EXACT

    def of_both(end: pl.Expr) -> pl.Expr:
        return pl.when(known).then(pl.col("share")).otherwise(off + on * end).clip(0, 1)

    return of_both(low), of_both(high)


def _whole(placed: pl.DataFrame, elapsed: pl.DataFrame) -> pl.DataFrame:
    """The rows of the inference, by the samples of all of it: those of a layer that is too short to be met tell nothing
    of that layer, and yet their share of all samples is its share of the time. ``layer`` is null."""
    everywhere = pl.lit("")
    found = closed(placed.with_columns(layer=everywhere), elapsed.with_columns(layer=everywhere), ["layer"])
    return found.with_columns(layer=pl.lit(None, pl.String))


def nested(budget: pl.DataFrame) -> list[dict[str, Any]]:
    """Of ``SCHEMA``, in its order: ``path``, ``elapsed_ns``, ``samples`` and ``parts`` of each layer."""
    found = []
    for path, rows in groupby(budget.iter_rows(named=True), key=itemgetter("layer")):
        parts = [dict(row) for row in rows]
        row = {"path": path, "elapsed_ns": sum(part["ns"] for part in parts), "samples": parts[0]["of_samples"]}
        of_layer = ("layer", "of_samples")
        found.append({**row, "parts": [{k: v for k, v in part.items() if k not in of_layer} for part in parts]})
    return found


def with_parts(times: ThreadTimes, moments: pl.DataFrame) -> pl.DataFrame:
    """The moments, with ``code_part`` of those that are samples."""
    recorded = pl.col("tid").is_in([times.calling_tid, *times.taken.team])
    operator = pl.when(recorded).then(pl.col("operator").cast(pl.String)).otherwise(pl.lit(UNRECORDED))
    inside = times.taken.inside.with_columns(operator=operator)
    of_part = ["code", "name", "operator", "entered_code", "entered_name"]
    keys = inside.select(of_part).unique()
    parts = [part_of(*key) for key in keys.iter_rows()]
    known = keys.with_columns(code_part=pl.Series(parts, dtype=pl.String))
    sampled = inside.join(known, on=of_part, how="left", nulls_equal=True)
    each = sampled.select("tid", "time_ns", "code_part").unique(["tid", "time_ns"], keep="first")
    joined = moments.join(each, on=["tid", "time_ns"], how="left", maintain_order="left")
    return joined.with_columns(code_part=pl.when("sampled").then("code_part"))


def _part() -> pl.Expr:
    """Of rows of ``closed``."""
    off = pl.col("state").replace_strict({**OFF_CPU, ABSENT: ABSENT}, default=BLOCKED, return_dtype=pl.String)
    return pl.coalesce("code_part", off)


def _sums(rows: pl.DataFrame, iterations: int) -> pl.DataFrame:
    """Of the whole (``layer`` is null) and of each layer: ``part``, ``ns`` of an iteration, ``off_ns`` of them off a
    processor, ``share``, ``samples``."""
    off_ns = pl.col("ns").filter((pl.col("samples") == 0) & (pl.col("state") != UNSAMPLED)).sum() / iterations
    there = rows.filter(pl.col("part") != ABSENT)
    sums = there.group_by("layer", "part", maintain_order=True).agg(pl.col("ns", "samples").sum(), off_ns=off_ns)
    whole_ns = pl.col("ns").sum().over("layer")
    return sums.filter(pl.col("ns") > 0).with_columns(
        share=pl.when(whole_ns > 0).then(pl.col("ns") / whole_ns), ns=pl.col("ns") / iterations
    )


def _fits(name: str, known: Sequence[str]) -> bool:
    return any(one[1:] in name if one.startswith("*") else name.startswith(one) for one in known)
