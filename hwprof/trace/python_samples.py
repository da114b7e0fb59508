"""Samples with Python's stack above the library's: which Python line led to which kernel, as a flame graph a thread.

They are a profile of their own beside ``perf_samples``: sequences of one kind melt into one flame graph.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import polars as pl

from hwprof.analysis.python_stacks import looks_of, of_pipeline, python_stacks, stacks_at
from hwprof.run.manifest import PassRecord
from hwprof.trace.call_stacks import Callers, CallStacks
from hwprof.trace.encoder import TraceEncoder
from hwprof.trace.frames import Code, File, Key, Place, keys_of
from hwprof.trace.profile_sequence import ProfileSequence


class PythonSamples:
    """Of one pass, window by window."""

    def __init__(
        self, frames: pl.DataFrame, record: PassRecord, pid: int, code: Code, callers: Callers, writer: TraceEncoder
    ) -> None:
        """``frames``: rows of ``python_frames``; ``pid``: the process's number in the trace."""
        self._record, self._pid, self._writer = record, pid, writer
        self._code, self._callers = code, callers
        looks = looks_of(record)
        self._python = python_stacks(of_pipeline(frames, looks), looks)
        self._functions = {row["stack"]: row for row in self._python.stacks.iter_rows(named=True)}
        self._places: dict[int, tuple[Place, ...]] = {}
        self._threads: dict[int, tuple[ProfileSequence, CallStacks]] = {}
        self.samples = 0

    def write(self, samples: pl.DataFrame) -> None:
        """Those of the process's threads that were in Python, or worked for the one that calls the model."""
        if not self._functions:
            return
        python = stacks_at(samples, self._python.times, self._record.main_tid)
        placed = samples.select("time_ns", "tid", "pid", native="stack", python=python)
        own = placed.hstack(keys_of(samples)).filter(pl.col("python").is_not_null(), pl.col("pid") == self._record.pid)
        for (tid,), rows in own.partition_by("tid", as_dict=True, maintain_order=True).items():
            sequence, stacks = self._threads.get(tid) or self._thread(tid)
            keys = rows.select("python", "native", "kernel", "address", "in_system")
            numbers = [
                stacks.number(native, Key(*key), self._roots(python)) for python, native, *key in keys.iter_rows()
            ]
            sequence.write(rows["time_ns"].to_numpy(), numbers)
            self.samples += rows.height

    def _thread(self, tid: int) -> tuple[ProfileSequence, CallStacks]:
        sequence = self._writer.profile(self._pid, tid)
        found = self._threads[tid] = (sequence, CallStacks(sequence.interned, self._code, self._callers))
        return found

    def _roots(self, stack: int) -> tuple[Place, ...]:
        """Python's functions, the outermost first: each with the line that it had reached."""
        known = self._places.get(stack)
        if known is None:
            row = self._functions[stack]
            name = f"{row['function']} ({PurePosixPath(row['file']).name}:{row['line']})"
            above = self._roots(row["parent"]) if row["parent"] is not None else ()
            known = self._places[stack] = (*above, Place(name, File(row["file"]), row["line"]))
        return known
