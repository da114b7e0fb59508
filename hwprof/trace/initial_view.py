"""How a trace opens: which tracks are pinned, and which time range is visible."""

from __future__ import annotations

import json
import re
from typing import Final

import polars as pl

from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.run.passes import MEASURE
from hwprof.trace.iterations_shown import opened_at
from hwprof.trace.tracks import FINDING, KERNEL, LAYER, OPERATOR, PYTHON, TITLES, named

_ABOVE: Final = (r"iterations", r"stages")
_FINDINGS: Final = rf"{FINDING} [1-3]: .*"
"""Those that could win most."""

_VALUES: Final = (r"CPUs busy", r"instructions/s", r"power/\S+", r"memory/torch", r"memory/rss")

THREADS: Final = 4
"""As many threads' kernels are pinned, so that they and the layers above them are on one screen."""


def parameters(run: RunDirectory) -> dict[str, str]:
    """The Perfetto UI's address parameters for a run's trace: one pass's tracks pinned, its first measured iteration in
    view that others did not disturb, if there is one. Nothing is unfolded: what is pinned would stand there twice.

    That is the measured pass, unless only another one was sampled: then layers stand above the kernels that they ran.
    """
    sampled = run.scan("samples").group_by("pass", "tid").agg(samples=pl.len()).collect()
    record = _pass_to_show(run, sampled["pass"].unique().to_list())
    if record is None:
        return {}
    kernels = _kernels(sampled.filter(**{"pass": record.name}), record)
    operators = rf"{TITLES[OPERATOR]} of .* {record.main_tid}"
    # in this order, one above the other; stacks of Python are tall, and stand last
    pins = (_ABOVE, [_FINDINGS], [TITLES[LAYER], operators], [*kernels, *_VALUES], [TITLES[PYTHON]])
    of_pass = re.escape(named("", record).strip())
    commands = [{"id": "dev.perfetto.PinTracksByRegex", "args": [f"^({'|'.join(some)}) {of_pass}$"]} for some in pins]
    return {"startupCommands": json.dumps(commands, separators=(",", ":"))} | _view(run, record)


def _pass_to_show(run: RunDirectory, sampled: list[str]) -> PassRecord | None:
    completed = run.completed_passes()
    with_samples = [record for record in completed if record.name in sampled]
    candidates = with_samples or completed
    return next((record for record in candidates if record.name == MEASURE), next(iter(candidates), None))


def _kernels(sampled: pl.DataFrame, record: PassRecord) -> list[str]:
    """Patterns of the tracks that show what the threads ran that worked most, the main thread's among them."""
    busiest = sampled.filter(pl.col("tid") != record.main_tid).sort("samples", "tid", descending=[True, False])
    workers = [rf"{TITLES[KERNEL]} of .* {tid}" for tid in busiest["tid"].head(THREADS - 1)]
    return [TITLES[KERNEL], *workers] if sampled.height else []


def _view(run: RunDirectory, record: PassRecord) -> dict[str, str]:
    shown = opened_at(record)
    if shown is None:
        return {}
    mine = (pl.col("iteration") == shown.index) & (pl.col("kind") != "op")
    begin_ns, end_ns = (
        run.scan_pass("spans", record.name)
        .filter(mine)
        .select(pl.col("begin_ns").min(), pl.col("end_ns").max())
        .collect()
        .row(0)
    )
    if begin_ns is None:
        return {}
    to_boottime = run.manifest.clock.boottime_ns - run.manifest.clock.monotonic_ns
    margin_ns = max(1, (end_ns - begin_ns) // 50)
    return {
        "visStart": str(begin_ns + to_boottime - margin_ns),
        "visEnd": str(end_ns + to_boottime + margin_ns),
    }
