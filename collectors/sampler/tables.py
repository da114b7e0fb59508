"""From decoded records to rows of the run's tables."""

from __future__ import annotations

import os
from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from dataclasses import fields
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from collectors.sampler.call_chains import NO_CALLERS, Stacks
from collectors.sampler.records import Mapping, Numbers, Samples, Switches, Words
from collectors.sampler.sampling_events import INSTRUCTIONS, SamplingEvent
from collectors.shared.counting.notes import SILENT_NS
from hwprof.hardware.perf_sampling import CPUMODES, UNKNOWN_MODE
from hwprof.run.schema import conform

Mask = NDArray[np.bool_]

COUNTED: Final = ("cycles", "instructions", "llc_misses")
"""The columns of what was counted between samples."""


def samples_table(samples: Samples, stacks: Stacks, leaders: Dictionary[int, SamplingEvent]) -> pl.DataFrame:
    """The rows of ``samples``, by time. ``leaders``: the sampling events by number."""
    samples = _by_time(samples)
    since = _Since(samples.event, leaders)
    reading = any(leader.reading for leader in leaders.values())
    cpu_ns = since.last(samples.enabled_ns) if reading else samples.period
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
            **_deltas(since.last(samples.values), since.kinds, list(dict.fromkeys(leaders.values()))),
        }
    )
    name = next((leader.name for leader in leaders.values()), None)
    domain = pl.col("mode").replace_strict(CPUMODES, default=UNKNOWN_MODE, return_dtype=pl.String)
    rows = frame.with_columns(
        event=pl.lit(name, dtype=pl.String), domain=domain, stack=pl.when("known").then("stack")
    ).drop("mode", "known")
    return conform("samples", rows)


def _by_time(samples: Samples) -> Samples:
    """A ring's samples come in order, those of several rings one ring after the other."""
    if (samples.time_ns[1:] >= samples.time_ns[:-1]).all():
        return samples
    order = np.argsort(samples.time_ns, kind="stable")
    return Samples(**{column.name: getattr(samples, column.name).take(order, axis=0) for column in fields(Samples)})


class _Since:
    """What each event's group counted between its samples. ``kinds``: for each sample, which of the distinct leaders
    its event is, -1 for an event that is none of them."""

    def __init__(self, event: Words, leaders: Dictionary[int, SamplingEvent]) -> None:
        """``event`` by time."""
        distinct = {leader: place for place, leader in enumerate(dict.fromkeys(leaders.values()))}
        known = np.array(sorted(leaders), dtype=np.uint64)
        place = np.searchsorted(known, event).astype(np.min_scalar_type(len(known)))  # few digits sort fast
        found = np.append(known, np.uint64(0))[place] == event
        place[~found] = len(known)
        self.kinds = np.array([*(distinct[leaders[number]] for number in known.tolist()), -1])[place]
        self._order = np.argsort(place, kind="stable")
        ordered = place[self._order]
        self._first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])

    def last(self, values: Numbers) -> Numbers:
        """Each sample's values less those of its event's last one; its own at the first."""
        ordered = values.take(self._order, axis=0)
        grown = ordered.copy()
        grown[1:] -= ordered[:-1]
        grown[self._first] = ordered[self._first]
        result = np.empty_like(grown)
        result[self._order] = grown
        return result


def _deltas(grown: Numbers, kinds: Numbers, leaders: Sequence[SamplingEvent]) -> dict[str, pl.Series]:
    """``cycles``, ``instructions`` and ``llc_misses`` since the last sample, null where its group lacks them."""
    found = {name: np.zeros(len(grown), dtype=np.int64) for name in COUNTED}
    known: dict[str, Mask] = {name: np.zeros(len(grown), dtype=bool) for name in found}
    for kind, leader in enumerate(leaders):
        if not leader.reading:
            continue
        mine = kinds == kind
        parts = {"cycles": grown[mine, 0]}
        if leader.members and leader.members[0].name == INSTRUCTIONS:
            parts["instructions"] = grown[mine, 1]
        if leader.misses:
            parts["llc_misses"] = grown[mine, 2 : 2 + len(leader.misses)] @ np.array(leader.misses, dtype=np.int64)
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
    """The rows of ``switches``: each switch-out with the coming back that follows it, by time."""
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
