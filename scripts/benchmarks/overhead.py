"""How much slower is a forward while it is watched? hwprof beside torch.profiler and cProfile, interleaved.

    python -m scripts.benchmarks.overhead [--models yolov7 yolov8n] [--rounds 12]

Every round runs each kind of forward once, in a random order, in one process. A kind's figure is the median over
rounds of its time divided by the bare forward's of the same round. The bare loop runs the model as it stands, with
nothing of hwprof in it. hwprof's kinds have rounds of their own with the bare forward, the other profilers too, fewer
ones. The error is that of the median (1.25 standard errors of the mean, from the quartiles).
"""

from __future__ import annotations

import argparse
import cProfile
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from collectors.perf.collector import PerfCollector
from hwprof.collector.contract import PassContext
from hwprof.session.plan import schedule
from hwprof.session.recorder import SpanRecorder
from hwprof.workload import factory
from hwprof.workload.layer_hooks import LayerHooks
from hwprof.workload.protocol import Workload
from hwprof.workload.spec import WorkloadSpec
from scripts.benchmarks.slower import slower
from scripts.benchmarks.tables import Table, write

Forward = Callable[[], None]
BARE = "bare forward"
ITERATIONS = 20
"""Of a measure pass, by default."""
COUNTED = sum(record.layers_counted for record in schedule(0, ITERATIONS, 1, alternate=True))
MEASURE_PASS = f"hwprof, measure pass ({COUNTED} of {ITERATIONS} counted)"


class Watched:
    """hwprof's own measure pass around a forward: the recorder, the layer watch, the counters."""

    def __init__(self, workload: Workload, forward: Forward, raw: Path) -> None:
        self._forward = forward
        self._recorder = SpanRecorder()
        self._watch = LayerHooks(workload.modules, self._recorder)
        self._counters = PerfCollector()
        self._counters.start(PassContext("measure", os.getpid(), os.getpid(), raw, {}))
        self._recorder.count_with([self._counters])

    def timed(self) -> int:
        """One iteration that times its layers; nanoseconds inside of the iteration's own bookkeeping."""
        self._watch.time_only()
        return self._iterate()

    def counted(self) -> int:
        """One iteration that counts its layers."""
        self._watch.count()
        return self._iterate()

    def _iterate(self) -> int:
        with self._recorder.iteration(0, warmup=False, event_set=0), self._recorder.stage("inference"):
            begin = time.monotonic_ns()
            self._forward()
            taken = time.monotonic_ns() - begin
        self._watch.remove()
        return taken


def _timed(forward: Forward) -> int:
    begin = time.monotonic_ns()
    forward()
    return time.monotonic_ns() - begin


def _torch_profiler(forward: Forward, **options: Any) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options):
        return _timed(forward)


def _cprofile(forward: Forward) -> int:
    profile = cProfile.Profile()
    profile.enable()
    try:
        return _timed(forward)
    finally:
        profile.disable()


def _bench(model: str, rounds: int) -> list[list[str]]:
    workload = factory.build(WorkloadSpec(model=model))
    workload.prepare()
    call = workload.forwards()[0]

    def forward() -> None:
        with torch.inference_mode():
            call.run()

    for _ in range(3):
        forward()
    with tempfile.TemporaryDirectory() as raw:
        watched = Watched(workload, forward, Path(raw))
        kinds: dict[str, Callable[[], int]] = {
            BARE: lambda: _timed(forward),
            "hwprof, timed iteration": watched.timed,
            "hwprof, counted iteration": watched.counted,
        }
        others: dict[str, Callable[[], int]] = {
            BARE: kinds[BARE],
            "torch.profiler": lambda: _torch_profiler(forward),
            "torch.profiler, record_shapes": lambda: _torch_profiler(forward, record_shapes=True),
            "torch.profiler, with_stack": lambda: _torch_profiler(forward, with_stack=True),
            "cProfile": lambda: _cprofile(forward),
        }
        times = _interleave(kinds, rounds)
        other_times = _interleave(others, max(rounds // 4, 5))
    ratios = _ratios(times)
    ratios[MEASURE_PASS] = [
        (timed * (ITERATIONS - COUNTED) + counted * COUNTED) / ITERATIONS
        for timed, counted in zip(ratios["hwprof, timed iteration"], ratios["hwprof, counted iteration"], strict=True)
    ]
    rows = [_row(model, kind, times.get(kind), ratios[kind]) for kind in (*kinds, MEASURE_PASS)]
    other_ratios = _ratios(other_times)
    return rows + [_row(model, kind, other_times[kind], other_ratios[kind]) for kind in others if kind != BARE]


def _ratios(times: dict[str, list[int]]) -> dict[str, list[float]]:
    """Each kind's time over the bare forward's, round by round."""
    return {
        kind: [taken / bare for taken, bare in zip(values, times[BARE], strict=True)] for kind, values in times.items()
    }


def _interleave(kinds: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[int]]:
    times: dict[str, list[int]] = {kind: [] for kind in kinds}
    names = list(kinds)
    for kind in names:
        kinds[kind]()  # a profiler's first use is slow
    order = random.Random(0)
    for _ in range(rounds):
        for kind in order.sample(names, len(names)):
            times[kind].append(kinds[kind]())
    return times


def _row(model: str, kind: str, times_ns: list[int] | None, ratios: list[float]) -> list[str]:
    low, _, high = statistics.quantiles(ratios, n=4)
    time_ms = f"{statistics.median(times_ns) / 1e6:.1f}" if times_ns else ""
    quartiles = f"{(low - 1) * 100:+.2f} … {(high - 1) * 100:+.2f}%"
    return [model, kind, time_ms, slower(ratios), quartiles, str(len(ratios))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["yolov7", "yolov8n"])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path("results/overhead.md"))
    options = parser.parse_args()
    rows = [row for model in options.models for row in _bench(model, options.rounds * (5 if model[-1] == "n" else 1))]
    table = Table(
        title="Overhead",
        columns=["model, 640", "forward", "median ms", "slower than bare", "quartiles", "rounds"],
        rows=rows,
        note=__doc__,
    )
    write(table, options.output)


if __name__ == "__main__":
    main()
