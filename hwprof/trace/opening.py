"""How a trace opens: which tracks are unfolded and pinned, and which stretch of time is in view."""

from __future__ import annotations

import json
import re
from typing import Final

import polars as pl

from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord

MEASURE: Final = "measure"
_PINNED: Final = r"stages|layers|CPUs busy|instructions/s|power/\S+"


def parameters(run: RunDirectory) -> dict[str, str]:
    """The Perfetto UI's address parameters for a run's trace: its numbers' pass pinned, one of its iterations in view.

    The iteration is the first measured one whose layers were counted, or else the first measured one.
    """
    record = run.find_pass(MEASURE) or next(iter(run.completed_passes()), None)
    if record is None:
        return {}
    pins = rf"^({_PINNED}) \({re.escape(record.name)}\)$"
    commands = [
        {"id": "dev.perfetto.ExpandTracksByRegex", "args": [r"^\S+ pass\b"]},
        {"id": "dev.perfetto.PinTracksByRegex", "args": [pins]},
    ]
    return {"startupCommands": json.dumps(commands, separators=(",", ":"))} | _view(run, record)


def _view(run: RunDirectory, record: PassRecord) -> dict[str, str]:
    measured = [iteration for iteration in record.iterations if not iteration.warmup]
    chosen = next((entry for entry in measured if entry.layers_counted), next(iter(measured), None))
    if chosen is None:
        return {}
    mine = (pl.col("pass") == record.name) & (pl.col("iteration") == chosen.index) & (pl.col("kind") != "op")
    begin_ns, end_ns = (
        run.scan("spans").filter(mine).select(pl.col("begin_ns").min(), pl.col("end_ns").max()).collect().row(0)
    )
    if begin_ns is None:
        return {}
    to_boottime = run.manifest.clock.boottime_ns - run.manifest.clock.monotonic_ns
    margin_ns = max(1, (end_ns - begin_ns) // 50)
    return {
        "visStart": str(begin_ns + to_boottime - margin_ns),
        "visEnd": str(end_ns + to_boottime + margin_ns),
    }
