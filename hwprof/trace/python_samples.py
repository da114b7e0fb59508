"""Samples with Python's stack above the library's: which Python line led to which kernel, as a flame graph a thread.

They are a profile of their own beside ``perf_samples``: sequences of one kind melt into one flame graph.
"""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from hwprof.analysis.python_stacks import Origin, looks_of, python_stacks, stacks_at
from hwprof.run.manifest import PassRecord
from hwprof.trace.call_stacks import Callers, CallStacks, numbers_of
from hwprof.trace.encoder import TraceEncoder
from hwprof.trace.frames import Code, File, Key, Place, keys_of
from hwprof.trace.profile_sequence import ProfileSequence


class PythonSamples:
    """Of one pass, window by window."""

    def __init__(
        self, frames: pl.DataFrame, record: PassRecord, pid: int, code: Code, callers: Callers, writer: TraceEncoder
    ) -> None:
        """``frames``: as ``python_stacks.of_pipeline`` leaves them; ``pid``: the process's number in the trace."""
        self._record, self._pid, self._writer = record, pid, writer
        self._code, self._callers = code, callers
        self._python = python_stacks(frames, looks_of(record))
        self._roots = _roots(self._python.stacks)
        self._threads: dict[int, tuple[ProfileSequence, CallStacks]] = {}

    def write(self, samples: pl.DataFrame) -> None:
        """Those of the process's threads that were in Python, or worked for the one that calls the model."""
        if not self._roots:
            return
        python = stacks_at(samples, self._python.times, self._record.main_tid)
        placed = samples.select("time_ns", "tid", "pid", native="stack", python=python)
        own = placed.hstack(keys_of(samples)).filter(pl.col("python").is_not_null(), pl.col("pid") == self._record.pid)
        for (tid,), rows in own.partition_by("tid", as_dict=True, maintain_order=True).items():
            sequence, stacks = self._threads.get(tid) or self._thread(tid)
            numbers = numbers_of(rows.select("python", "native", *Key._fields), partial(self._number, stacks))
            sequence.write(rows["time_ns"].to_numpy(), numbers.to_list())

    def _number(self, stacks: CallStacks, python: int, native: int | None, *key: Any) -> int:
        return stacks.number(native, Key(*key), self._roots[python])

    def _thread(self, tid: int) -> tuple[ProfileSequence, CallStacks]:
        sequence = self._writer.profile(self._pid, tid)
        found = self._threads[tid] = (sequence, CallStacks(sequence.interned, self._code, self._callers))
        return found


def _roots(stacks: pl.DataFrame) -> list[tuple[Place, ...]]:
    """Of each of the ``python_stacks.STACKS`` the pipeline's functions, the outermost first, each with the line that it
    had reached; and what the framework calls last: between the pipeline's functions it calls modules, no more."""
    pipelines: list[tuple[Place, ...]] = []
    roots: list[tuple[Place, ...]] = []
    for parent, function, file, line, origin in stacks.select(
        "parent", "function", "file", "line", "origin"
    ).iter_rows():
        above = pipelines[parent] if parent is not None else ()
        place = Place(f"{function} ({PurePosixPath(file).name}:{line})", File(file), line)
        pipelines.append((*above, place) if origin == Origin.PIPELINE else above)
        roots.append(above if origin == Origin.PROFILER else (*above, place))
    return roots
