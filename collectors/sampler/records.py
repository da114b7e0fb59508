"""What the records of ring buffers become: columns of samples and switches, and the rare records one by one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectors.sampler.switch_outs import SwitchOut
from collectors.sampler.wakeups import Wakeups

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Small = NDArray[np.int32]


@dataclass
class Samples:
    """Columns of the same length, in order of the stream. ``values``: a row a sample, as wide as the largest group,
    filled with 0. ``chain``: of ``Chains``, -1 where there are no callers."""

    event: Words
    address: Words
    pid: Small
    tid: Small
    time_ns: Numbers
    cpu: Small
    period: Numbers
    mode: Small
    enabled_ns: Numbers
    running_ns: Numbers
    values: Numbers
    chain: Small


@dataclass
class Switches:
    """When threads left a processor (``out``) and came back."""

    pid: Small
    tid: Small
    time_ns: Numbers
    cpu: Small
    out: NDArray[np.bool_]
    preempted: NDArray[np.bool_]


@dataclass(frozen=True)
class Mapping:
    """A range of a file, or of memory without one, that became part of a process's executable addresses."""

    time_ns: int
    pid: int
    address: int
    size_bytes: int
    offset_bytes: int
    file: str
    protection: int


@dataclass(frozen=True)
class TaskEvent:
    """A thread began, or ended; ``pid`` is another process's where a child process was forked."""

    time_ns: int
    pid: int
    tid: int


@dataclass(frozen=True)
class Renaming:
    """A thread that took another name; ``pid`` is another process's where a child did."""

    pid: int
    tid: int
    name: str


@dataclass
class Batch:
    """What one block of bytes held."""

    samples: Samples
    switches: Switches
    mappings: list[Mapping] = field(default_factory=list)
    created_threads: list[TaskEvent] = field(default_factory=list)
    ended_threads: list[TaskEvent] = field(default_factory=list)
    renamings: list[Renaming] = field(default_factory=list)
    switch_outs: list[SwitchOut] = field(default_factory=list)
    wakeups: Wakeups = field(default_factory=Wakeups.none)
    lost: int = 0  # records that found no room, or that the hardware dropped
    throttled: int = 0  # how often the kernel stopped an event for the rest of a tick


def joined(parts: list[Any]) -> Any:
    """Batches' samples (or switches) as one; at least one part."""
    kind = type(parts[0])
    columns = {}
    for name in (one.name for one in fields(kind)):
        arrays = [getattr(part, name) for part in parts]
        if arrays[0].ndim == 2:
            width = max(part.shape[1] for part in arrays)
            arrays = [_widened(part, width) for part in arrays]
        columns[name] = np.concatenate(arrays)
    return kind(**columns)


def _widened(part: Any, width: int) -> Any:
    return part if part.shape[1] == width else np.pad(part, ((0, 0), (0, width - part.shape[1])))
