"""Jobs that sample loops of known length in the guest."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import Any

import polars as pl

from collectors.perf.collector import PerfCollector
from collectors.sampler.collector import SamplerCollector
from hwprof.errors import HwprofError
from hwprof.hardware import perf_event
from tests.pmu.guest.lifecycles import CORE, INSTRUCTIONS, context, counted_in_turn
from tests.pmu.guest.loops import LOOP_ADDRESS, LOOP_END, loop
from tests.pmu.guest.users import job_of_user, paranoid
from tests.support.reported import fields, texts
from tests.support.worker_thread import WorkerThread

TURNS = 100_000_000
WORKERS_TURNS = 50_000_000
A_LITTLE = 10_000_000


def sampled_loops() -> dict[str, Any]:
    """The main thread and a worker in a loop, sampled on cycles; the main thread's are counted once more."""
    worker = WorkerThread()
    sampler = SamplerCollector()
    sampler.start(context(kernel=False))
    sampler.work_begins()
    counter = perf_event.open_event(perf_event.Attributes(0, 0, exclude_kernel=True))
    late = WorkerThread()
    perf_event.enable_group(counter)
    begin_ns = time.monotonic_ns()
    loop(TURNS)
    end_ns = time.monotonic_ns()
    perf_event.disable_group(counter)
    _, _, (cycles,) = perf_event.read_group(counter, 1)
    os.close(counter)
    worker.do(partial(loop, WORKERS_TURNS))
    late.do(partial(loop, WORKERS_TURNS))
    sampler.work_ends()
    stopped = sampler.stop()
    return {
        "names": {"main": threading.get_native_id(), "worker": worker.native_id, "late": late.native_id},
        "loop": [LOOP_ADDRESS, LOOP_END],
        "between": [begin_ns, end_ns],
        "cycles": cycles,
        "samples": stopped.tables["samples"].to_dicts(),
        "notes": texts(stopped.notes),
        "detail": fields(stopped.detail),
    }


def counted_and_sampled() -> dict[str, Any]:
    """Counters beside the sampler's, as in the trace pass: what both have of the same loops."""
    sampler, counter = SamplerCollector(), PerfCollector()
    sampler.start(context(kernel=False))
    sampler.work_begins()
    counter.start(context(kernel=False, events=[*CORE, *INSTRUCTIONS], counters_held_by="sampler"))
    begin_ns = time.monotonic_ns()
    counted = counted_in_turn(counter, A_LITTLE)
    end_ns = time.monotonic_ns()
    sampler.work_ends()
    stopped = sampler.stop()
    samples = stopped.tables["samples"].filter(pl.col("time_ns").is_between(begin_ns, end_ns))
    inside = samples.filter(samples["address"].is_between(LOOP_ADDRESS, LOOP_END, closed="left"))
    return counted | {
        "held": fields(stopped.detail)["groups"],
        "sampled_cycles": int(inside["period"].sum()),
        "sampled_instructions": int(inside["instructions"].sum()),
    }


def sample_a_little() -> dict[str, Any]:
    """What this user may sample: what the sampler says of itself, and a loop."""
    sampler = SamplerCollector()
    available = sampler.availability()
    result: dict[str, Any] = {"ok": available.ok, "reason": available.reason, "remedy": available.remedy}
    try:
        sampler.start(context())
        sampler.work_begins()
    except HwprofError as error:
        return result | {"refused": error.message, "refused_remedy": error.remedy}
    loop(A_LITTLE)
    sampler.work_ends()
    stopped = sampler.stop()
    samples = stopped.tables["samples"]
    inside = samples.filter(samples["address"].is_between(LOOP_ADDRESS, LOOP_END, closed="left")).height
    return result | {
        "samples": samples.height,
        "inside": inside,
        "domains": samples["domain"].unique().to_list(),
        "switches": stopped.tables["switches"].height,
        "mappings": stopped.tables["mappings"].height,
        "notes": texts(stopped.notes),
        "detail": fields(stopped.detail),
    }


def ordinary_samplers() -> dict[str, Any]:
    """``sample_a_little`` as an ordinary user at each level."""
    found = {}
    for level in (1, 2, 3):
        with paranoid(level):
            found[str(level)] = job_of_user("sample_a_little")
    return found
