"""Results of cases that nobody measured."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hwprof.bench.matrix import Case
from hwprof.bench.result import Result, measured
from hwprof.bench.samples import Failure, Model, Samples, Value
from hwprof.bench.store import Plan, Settings
from hwprof.hardware import machine
from hwprof.run.manifest import WorkloadRecord
from hwprof.run.peaks import Peak, Peaks, Unit
from hwprof.run.trials import Difference
from hwprof.run.variants import MatchedBoxes, VariantRecord
from hwprof.workload.spec import WorkloadSpec

SPEC = WorkloadSpec(model="yolov8n")
CREATED = "2026-11-29T12:00:00+00:00"


def case(**fields: object) -> Case:
    return Case(workload=msgspec.structs.replace(SPEC, **fields))


def peak(what: str, value: float, level: str | None = None) -> Peak:
    unit: Unit = "GFLOP/s" if level is None else "GB/s"
    return Peak(what=what, threads=2, level=level, value=value, unit=unit, worst=value, repetitions=1, how="x")


PEAKS = Peaks(
    created="",
    machine="",
    processor="",
    threads=[1, 2],
    peaks=[peak("fp32", 500.0), peak("gemm-fp32", 400.0), peak("triad", 20.0, "DRAM")],
)


def plan(*cases: Case) -> Plan:
    """To be done here."""
    return Plan(
        created=CREATED,
        command=[],
        folder=str(Path.cwd()),
        machine=machine.describe(),
        settings=Settings(),
        cases=list(cases),
    )


def record(of: Case, variant: VariantRecord | None = None) -> WorkloadRecord:
    return WorkloadRecord(
        name=of.workload.model,
        kind="yolo",
        weights="random (seed 0)",
        parameters=3_000_000,
        threads=of.workload.threads or 2,
        batch=of.workload.batch,
        sources=["bus.jpg", "zidane.jpg"],
        variant=variant,
        options={"imgsz": of.workload.imgsz or 640},
    )


def result(of: Case, *inference_ns: int, others: float | None = 0.01, macs: int | None = 4_000_000_000) -> Result:
    """With 2 forwards of an image each, 3e6 parameters of 4 bytes."""
    names = list(of.workload.variants)
    outputs = Difference(largest=0.05, mean=0.001, tensors=3)
    boxes = MatchedBoxes(without=10, found=9, matched=8)
    variant = VariantRecord(names, outputs, boxes) if names else None
    images = 2 * of.workload.batch
    model = Model(
        record=record(of, variant), forwards=2, images=images, size_bytes=12_000_000, macs=macs, bytes=40_000_000
    )
    samples = [Samples(values=[value(0, 3 * ns, inference_ns=ns, peak_bytes=ns)]) for ns in inference_ns]
    return measured(of, CREATED, 1.0, model, samples, others)


def value(
    begin_ns: int, end_ns: int, iterations: int = 1, *, inference_ns: int = 1, peak_bytes: int | None = None
) -> Value:
    """Of so many iterations that take all of it."""
    each_ns = (end_ns - begin_ns) // iterations
    return Value(
        begin_ns=begin_ns,
        end_ns=end_ns,
        inference_ns=[inference_ns] * iterations,
        iteration_ns=[each_ns] * iterations,
        peak_bytes=peak_bytes,
    )


def failed(of: Case, message: str, remedy: str | None = None) -> Result:
    return Result(case=of, created=CREATED, seconds=1.0, failure=Failure(message, remedy))
