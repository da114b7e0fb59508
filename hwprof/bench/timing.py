"""A case in one of its processes: the model is built when pyperf asks for its first value, and every iteration's times
are kept."""

from __future__ import annotations

import gc
import os
import sys
import time
from array import array
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hwprof import processes
from hwprof.bench.matrix import Case
from hwprof.bench.samples import FACTS_FILE, SAMPLES, Model, Value
from hwprof.hardware import machine
from hwprof.run.atomic import atomic
from hwprof.run.manifest import WorkloadRecord
from hwprof.workload.inference_clock import InferenceClock, forget_peak

if TYPE_CHECKING:
    from hwprof.workload.protocol import Workload
    from hwprof.workload.spec import WorkloadSpec


class Timing:
    """What pyperf calls: a number of iterations, of which it gets the model's time."""

    def __init__(self, case: Case, folder: Path, warmups: int, *, describes: bool) -> None:
        """``warmups``: so many first calls are not kept; ``describes``: this process says what the model is, and its
        times are not kept at all."""
        self._case = case
        self._folder = folder
        self._warmups = warmups
        self._describes = describes
        self._workload: Workload | None = None
        self._forwards = 1
        self._process = os.getpid()

    def __call__(self, loops: int) -> float:
        """In seconds: of a forward each, on average over those of an iteration."""
        if self._workload is None:
            self._workload = self._build()
        iterations, inferences, value_ns = array("q"), array("q"), time.monotonic_ns()
        for _ in range(loops):
            clock, begin_ns = InferenceClock(), time.perf_counter_ns()
            self._workload.iterate(clock.stage, None)
            iterations.append(time.perf_counter_ns() - begin_ns)
            inferences.append(clock.inference_ns)
        end_ns = time.monotonic_ns()
        processes.end_copy(self._process)
        if self._warmups or self._describes:
            self._warmups -= 1
        else:
            self._keep(value_ns, end_ns, inferences, iterations)
        return sum(inferences) / self._forwards / 1e9

    def _keep(self, begin_ns: int, end_ns: int, inferences: array[int], iterations: array[int]) -> None:
        own_bytes = 2 * len(iterations) * iterations.itemsize
        value = Value(
            begin_ns=begin_ns,
            end_ns=end_ns,
            inference_ns=[max(1, ns // self._forwards) for ns in inferences],
            iteration_ns=iterations.tolist(),
            peak_bytes=max(0, machine.process_bytes(os.getpid(), "VmHWM") - own_bytes) or None,
        )
        with (self._folder / SAMPLES.format(self._process)).open("ab") as file:
            file.write(msgspec.json.encode(value) + b"\n")
        forget_peak()

    def _build(self) -> Workload:
        from hwprof.workload import factory
        from hwprof.workload.changes import before_building
        from hwprof.workload.variant import make

        spec = self._case.workload
        before_building(spec.changes)
        workload = factory.build(spec)
        record = workload.prepare()
        self._forwards = max(1, len(workload.forwards()))
        made = make(workload, spec, compare=self._describes)
        if self._describes:
            record.variant = made.record
            _write(self._folder / FACTS_FILE, _described(workload, record, spec, made.notes))
        forget_peak()
        gc.collect()
        gc.freeze()
        return workload


def _described(workload: Workload, record: WorkloadRecord, spec: WorkloadSpec, notes: list[str]) -> Model:
    import torch

    forwards = max(1, len(workload.forwards()))
    macs, moved = _asked_of_a_forward(msgspec.structs.replace(spec, forwards=record.forwards), forwards)
    return Model(
        record=record,
        forwards=forwards,
        images=len(record.sources) or forwards,
        size_bytes=_size_bytes(workload),
        macs=macs,
        bytes=moved,
        notes=notes,
        versions={"torch": str(torch.__version__), "python": sys.version.split()[0]},
    )


def _asked_of_a_forward(spec: WorkloadSpec, forwards: int) -> tuple[int | None, int | None]:
    """MACs and bytes, on average, of another one of these models: what it is called with for that has no values, and a
    head may keep what it made of it. Null where they are not known of all layers, or its code fails in that call."""
    import polars as pl

    from hwprof.workload import factory
    from hwprof.workload.layer_tables import layer_tables

    rows: pl.DataFrame | None = None
    with suppress(Exception):  # whatever one more call of the model's code may raise
        workload = factory.build(spec)
        workload.prepare(values=False)
        rows, _ = layer_tables(workload)
    if rows is None:
        return None, None
    own = rows.select(pl.when("leaf").then("macs").otherwise("own_macs"))["macs"]
    moved = rows.filter("leaf")["bytes"]
    return (
        int(own.sum()) // forwards if own.null_count() == 0 else None,
        int(moved.sum()) // forwards if moved.null_count() == 0 else None,
    )


def _size_bytes(workload: Workload) -> int:
    """Of all weights as they are now, those that several layers share once."""
    from hwprof.workload.tensors import size_bytes, tensors_in

    tensors = tensors_in([module.state_dict() for module in workload.modules.values()])
    return sum({one.data_ptr(): size_bytes(one) for one in tensors}.values())


def _write(file: Path, what: msgspec.Struct) -> None:
    with atomic(file) as part:
        part.write_bytes(msgspec.json.encode(what))
