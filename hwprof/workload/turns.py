"""The turns of a process that a remedy is tried in (``contestant``): it builds the workload, changed as its entry says,
warms up, and then measures at each turn that it is given: no collector, no hook, nothing but the time of each iteration
and of the model's calls in it. Others may be measured between its turns, when it is stopped (SIGSTOP): what comes first
in a turn warms its caches again, and is not measured.
"""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from hwprof import processes
from hwprof.errors import NO_MEMORY, HwprofError, described, is_out_of_memory, of_system
from hwprof.hardware import machine
from hwprof.workload import factory
from hwprof.workload.changes import before_building, of_built
from hwprof.workload.contest import TURN, Entry, Measured, Ready, Refused, Said
from hwprof.workload.fingerprint import fingerprint
from hwprof.workload.inference_clock import InferenceClock, forget_peak
from hwprof.workload.protocol import Workload
from hwprof.workload.shared_weights import SharedWeights
from hwprof.workload.tensors import arrays_of
from hwprof.workload.thread_number import why_another

PID: Final = os.getpid()
"""A model's code may fork: the copy comes to an end."""

COLD_S: Final = 0.02
"""So long a turn's first iterations are not measured."""

LONG_S: Final = 0.2
"""An iteration that is longer has warm caches soon enough."""

LEAST_CALLS: Final = 2
MOST_CALLS: Final = 1000
"""In a turn."""


def carry_out(entry_file: Path, says: int, hears: int, weights: int) -> int:
    """Until it hears the end, or nobody is there any more."""
    for descriptor in (says, hears, weights):
        os.set_inheritable(descriptor, False)
    try:
        entry = Entry.read(entry_file)
        workload = _built(entry, SharedWeights(weights))
        last_s = _warm_up(workload, entry)
        _say(says, Ready())
        while os.read(hears, 1) == TURN:
            measured = _turn(workload, entry.turn_s, last_s)
            last_s = measured.iteration_ns[-1] / 1e9
            _say(says, measured)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return 1
        _say(says, Refused(of_system(error) or described(error)))
        return 1
    except HwprofError as error:
        _say(says, Refused(error.message, error.remedy))
        return error.exit_code
    except BaseException as error:  # whatever a model's code, or a library's, may raise
        _say(says, Refused(NO_MEMORY if is_out_of_memory(error) else described(error)))
        return 1
    return 0


def _say(descriptor: int, said: Said) -> None:
    data = msgspec.json.encode(said) + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


def _built(entry: Entry, shared: SharedWeights) -> Workload:
    changes = [*entry.workload.changes, *entry.changes]
    before_building(changes)
    workload = factory.build(entry.workload, shared)
    built = workload.prepare()
    if why := why_another(entry.threads):
        raise HwprofError(why, "leave that to whoever calls the model")
    processes.end_copy(PID)
    shared.confirm(fingerprint(workload)["weights"], fused=built.fused)
    of_built(workload.modules.values(), changes)
    gc.collect()
    gc.freeze()
    return workload


def _warm_up(workload: Workload, entry: Entry) -> float:
    """How long the last iteration took, in seconds; what comes out is kept."""
    kept: list[Any] = []
    seconds = 0.0
    for number in range(max(1, entry.warmup)):
        begin_s = time.perf_counter()
        keep = kept.append if number == 0 and entry.outputs is not None else None
        workload.iterate(InferenceClock().stage, None, keep)
        processes.end_copy(PID)
        seconds = time.perf_counter() - begin_s
    if entry.outputs is not None:
        np.savez(entry.outputs, *arrays_of(kept))
        kept.clear()
    forget_peak()
    return seconds


def _turn(workload: Workload, least_s: float, last_s: float) -> Measured:
    if last_s < LONG_S:
        end_s = time.perf_counter() + COLD_S
        while True:
            workload.iterate(InferenceClock().stage, None)
            processes.end_copy(PID)
            if time.perf_counter() >= end_s:
                break
    inference_ns: list[int] = []
    iteration_ns: list[int] = []
    end_s = time.perf_counter() + least_s
    while len(iteration_ns) < LEAST_CALLS or (time.perf_counter() < end_s and len(iteration_ns) < MOST_CALLS):
        clock, begin_ns = InferenceClock(), time.perf_counter_ns()
        workload.iterate(clock.stage, None)
        processes.end_copy(PID)
        iteration_ns.append(time.perf_counter_ns() - begin_ns)
        inference_ns.append(clock.inference_ns)
    return Measured(inference_ns, iteration_ns, machine.process_bytes(PID, "VmHWM") or None)
