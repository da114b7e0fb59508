"""From decoded records to rows of the run's tables."""

from __future__ import annotations

import os
from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from collectors.counting.notes import SILENT_NS
from collectors.sampler.chains import NO_CALLERS, Stacks
from collectors.sampler.clocks import INSTRUCTIONS, Clock
from collectors.sampler.records import Mapping, Numbers, Samples, Switches
from hwprof.hardware.perf_sampling import CPUMODES, UNKNOWN_MODE
from hwprof.run.schema import conform

Mask = NDArray[np.bool_]

COUNTED: Final = ("cycles", "instructions", "llc_misses")
"""The columns of what was counted between samples."""


def samples_table(samples: Samples, stacks: Stacks, clocks: Dictionary[int, Clock]) -> pl.DataFrame:
    """The rows of ``samples``, by time. ``clocks`` are the sampling events by number."""
    order = np.lexsort((samples.time_ns, samples.event))
    previous = _previous(samples, order)
    reading = any(clock.reading for clock in clocks.values())
    cpu_ns = samples.enabled_ns - previous.enabled_ns if reading else samples.period
    of_chain = np.array([*stacks.of_chain, 0], dtype=np.int32)
    frame = pl.DataFrame(
        {
            "time_ns": samples.time_ns,
            "pid": samples.pid,
            "tid": samples.tid,
            "cpu": samples.cpu,
            "period": samples.period,
            "cpu_ns": cpu_ns,
            "mode": samples.mode,
            "address": samples.address,
            "stack": of_chain[samples.chain],
            "known": samples.chain != NO_CALLERS,
            **_deltas(samples, previous.values, clocks),
        }
    )
    name = next((clock.name for clock in clocks.values()), None)
    domain = pl.col("mode").replace_strict(CPUMODES, default=UNKNOWN_MODE, return_dtype=pl.String)
    rows = frame.with_columns(
        event=pl.lit(name, dtype=pl.String), domain=domain, stack=pl.when("known").then("stack")
    ).drop("mode", "known")
    return conform("samples", rows.sort("time_ns", maintain_order=True))


class _Readings:
    """What the group had counted at another sample."""

    def __init__(self, enabled_ns: Numbers, values: Numbers) -> None:
        self.enabled_ns = enabled_ns
        self.values = values


def _previous(samples: Samples, order: Numbers) -> _Readings:
    """For each sample, what its event's group had counted at the last one before it: 0 at the first."""
    enabled_ns, values = np.zeros_like(samples.enabled_ns), np.zeros_like(samples.values)
    same = samples.event[order[1:]] == samples.event[order[:-1]]
    later, earlier = order[1:][same], order[:-1][same]
    enabled_ns[later] = samples.enabled_ns[earlier]
    values[later] = samples.values[earlier]
    return _Readings(enabled_ns, values)


def _deltas(samples: Samples, previous: Numbers, clocks: Dictionary[int, Clock]) -> dict[str, pl.Series]:
    """``cycles``, ``instructions`` and ``llc_misses`` since the last sample, null where its group lacks them."""
    counted = samples.values - previous
    found = {name: np.zeros(len(counted), dtype=np.int64) for name in COUNTED}
    known: dict[str, Mask] = {name: np.zeros(len(counted), dtype=bool) for name in found}
    numbers: dict[Clock, list[int]] = {}
    for number, clock in clocks.items():
        if clock.reading:
            numbers.setdefault(clock, []).append(number)
    for clock, events in numbers.items():
        mine = np.isin(samples.event, np.array(events, dtype=np.uint64))
        parts = {"cycles": counted[mine, 0]}
        if clock.members and clock.members[0].name == INSTRUCTIONS:
            parts["instructions"] = counted[mine, 1]
        if clock.misses:
            parts["llc_misses"] = counted[mine, 2 : 2 + len(clock.misses)] @ np.array(clock.misses, dtype=np.int64)
        for name, values in parts.items():
            found[name][mine], known[name][mine] = values, True
    return {
        name: pl.DataFrame({"value": values, "known": known[name]}).select(pl.when("known").then("value"))["value"]
        for name, values in found.items()
    }


def without_silent(samples: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The rows without the counters that stayed 0 for so long that nobody counts them, and which these are."""
    if samples["cpu_ns"].sum() < SILENT_NS:
        return samples, []
    silent = [name for name in COUNTED if samples[name].null_count() < samples.height and not samples[name].sum()]
    return samples.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in silent), silent


def stacks_table(stacks: Stacks) -> pl.DataFrame:
    """The rows of ``stacks``."""
    frame = pl.DataFrame(
        {
            "stack": pl.int_range(len(stacks.parent), eager=True),
            "parent": pl.Series(stacks.parent, dtype=pl.Int64),
            "address": pl.Series(stacks.address, dtype=pl.UInt64),
        }
    )
    return conform("stacks", frame.with_columns(parent=pl.when(pl.col("parent") >= 0).then("parent")))


def switches_table(switches: Switches) -> pl.DataFrame:
    """The rows of ``switches``: each leaving with the coming back that follows it, by time."""
    frame = pl.DataFrame(
        {
            "pid": switches.pid,
            "tid": switches.tid,
            "time_ns": switches.time_ns,
            "cpu": switches.cpu,
            "out": switches.out,
            "preempted": switches.preempted,
        }
    ).sort("tid", "time_ns", maintain_order=True)
    back = (~pl.col("out")).shift(-1).over("tid").fill_null(False)
    left = pl.col("out").shift(1).over("tid").fill_null(False)
    rows = (
        frame.with_columns(
            next_ns=pl.when(back).then(pl.col("time_ns").shift(-1).over("tid")),
            next_cpu=pl.when(back).then(pl.col("cpu").shift(-1).over("tid")),
        )
        .filter(pl.col("out") | ~left)
        .select(
            "pid",
            "tid",
            out_ns=pl.when("out").then("time_ns"),
            in_ns=pl.when("out").then("next_ns").otherwise("time_ns"),
            out_cpu=pl.when("out").then("cpu"),
            in_cpu=pl.when("out").then("next_cpu").otherwise("cpu"),
            preempted=pl.when("out").then("preempted"),
        )
    )
    return conform("switches", rows.sort(pl.coalesce("out_ns", "in_ns"), maintain_order=True))


def mappings_table(mappings: Sequence[Mapping]) -> pl.DataFrame:
    """The rows of ``mappings``, by time."""
    frame = pl.DataFrame(
        {
            "time_ns": [mapping.time_ns for mapping in mappings],
            "pid": [mapping.pid for mapping in mappings],
            "address": [mapping.address for mapping in mappings],
            "size_bytes": [mapping.size_bytes for mapping in mappings],
            "offset_bytes": [mapping.offset_bytes for mapping in mappings],
            "file": [os.fsencode(mapping.file).decode(errors="replace") for mapping in mappings],
        },
        schema={
            "time_ns": pl.Int64,
            "pid": pl.Int32,
            "address": pl.UInt64,
            "size_bytes": pl.UInt64,
            "offset_bytes": pl.UInt64,
            "file": pl.String,
        },
    )
    return conform("mappings", frame.sort("time_ns", maintain_order=True))
