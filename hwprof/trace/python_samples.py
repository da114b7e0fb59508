"""Samples with Python's stack above the library's: which Python line led to which kernel, as a flame graph a thread.

They are a profile of their own beside ``perf_samples``: sequences of one kind melt into one flame graph.
"""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

import polars as pl

from hwprof.analysis.python_stacks import Looks, Origin, PythonStacks, looks_of, python_stacks
from hwprof.analysis.sampled_stacks import SampledStacks
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.trace.call_stacks import Callers, CallStacks, numbers_of
from hwprof.trace.encoder import TraceEncoder
from hwprof.trace.frames import Code, File, Key, Place, keys_of
from hwprof.trace.profile_sequence import ProfileSequence

UNKNOWN_LINE: Final = Place("[line not known]", File("[python]"), 0)
"""Above code of which nobody knows which line led to it."""


class PythonSamples:
    """Of one pass, window by window."""

    def __init__(
        self,
        run: RunDirectory,
        frames: pl.DataFrame,
        record: PassRecord,
        pid: int,
        code: Code,
        callers: Callers,
        writer: TraceEncoder,
    ) -> None:
        """``frames``: as ``python_stacks.of_pipeline`` leaves them; ``pid``: the process's number in the trace."""
        self._record, self._pid, self._writer = record, pid, writer
        self._code, self._callers = code, callers
        looks = looks_of(record)
        python = python_stacks(frames, looks)
        self._roots = _roots(python.stacks)
        self._stacks = _sampled_stacks(run, python, looks, record) if self._roots else None
        self._threads: dict[int, tuple[ProfileSequence, CallStacks]] = {}

    def write(self, samples: pl.DataFrame) -> None:
        """Those of the process's own threads."""
        if self._stacks is None:
            return
        placed = samples.select("time_ns", "tid", "pid", native="stack", python=self._stacks.at(samples))
        own = placed.hstack(keys_of(samples)).filter(pl.col("pid") == self._record.pid)
        for (tid,), rows in own.partition_by("tid", as_dict=True, maintain_order=True).items():
            sequence, stacks = self._threads.get(tid) or self._thread(tid)
            numbers = numbers_of(rows.select("python", "native", *Key._fields), partial(self._number, stacks))
            sequence.write(rows["time_ns"].to_numpy(), numbers.to_list())

    def _number(self, stacks: CallStacks, python: int | None, native: int | None, *key: Any) -> int:
        return stacks.number(native, Key(*key), (UNKNOWN_LINE,) if python is None else self._roots[python])

    def _thread(self, tid: int) -> tuple[ProfileSequence, CallStacks]:
        sequence = self._writer.profile(self._pid, tid)
        found = self._threads[tid] = (sequence, CallStacks(sequence.interned, self._code, self._callers))
        return found


def _sampled_stacks(run: RunDirectory, python: PythonStacks, looks: Looks, record: PassRecord) -> SampledStacks:
    """The spans of the thread that calls the model are read all at once, in a few columns."""
    columns = ("pid", "tid", "iteration", "kind", "path", "begin_ns", "end_ns")
    spans = run.scan_pass("spans", record.name).filter(tid=record.main_tid or 0).select(columns).collect()
    return SampledStacks(python, looks, record, spans, run.read("layers"), run.of_pass("switches", record.name))


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
