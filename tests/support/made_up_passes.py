"""A pass with samples of made-up threads, and what is found of its threads."""

from __future__ import annotations

from typing import Any

import polars as pl

from hwprof.analysis.sampled_pass import sampled_pass
from hwprof.analysis.thread_times import ThreadTimes, thread_times
from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.run.schema import conform, empty
from tests.support.made_up_threads import MAIN, Stretch, layers_of, lived, recorded, spans_of

KERNELS = {"torch": 0, "openmp": 1}


def times_of(
    threads: dict[int, list[Stretch]],
    iterations: list[tuple[int, int]],
    asked: int = 2,
    operators: list[tuple[str, int, int]] | None = None,
    calls: list[tuple[str, int, int]] | None = None,
    callers: dict[str, int] | None = None,
    *,
    laid_out: bool = False,
) -> ThreadTimes:
    """Of threads that begin at 0 (``made_up_threads``), in a model of one layer, or of those that are called (path,
    begin, end), by the main thread or by ``callers``; ``operators`` (name, begin, end) are the main thread's."""
    samples, switches = recorded(threads)
    kernels = pl.DataFrame({"kernel": list(KERNELS.values()), "domain": list(KERNELS), "library": "l", "name": "n"})
    taken = samples.select("tid", "time_ns", "cpu_ns", kernel=pl.col("code").replace_strict(KERNELS))
    calls = calls or [("a", begin, end) for begin, end in iterations]
    record = PassRecord(
        name="trace",
        main_tid=MAIN,
        laid_out=laid_out,
        iterations=[IterationRecord(number, False, None, False) for number in range(len(iterations))],
    )
    names: dict[str, Any] = {"tid": list(threads), "name": [f"thread-{tid}" for tid in threads]}
    found = thread_times(
        sampled_pass(
            record,
            conform("samples", taken),
            spans_of(calls, iterations, operators or [], callers),
            conform("kernels", kernels),
            switches,
            conform("threads", pl.DataFrame(names)),
            stacks=empty("stacks"),
            lifetimes=lived(threads),
            series=empty("series"),
            modules=pl.concat([empty("layers"), layers_of(calls)], how="diagonal"),
            threads=asked,
        )
    )
    assert found is not None
    return found
