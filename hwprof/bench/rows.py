"""What a bench's table shows of each case, beside the model as it is and the machine's peaks. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from hwprof.analysis.roofline import Roofs, roofs_of
from hwprof.bench.between_processes import error_of_ratio
from hwprof.bench.matrix import EAGER
from hwprof.bench.result import Result
from hwprof.remedies.catalogue import group_of
from hwprof.run.details import METER, PACKAGE, PLATFORM
from hwprof.run.peaks import DRAM, Peaks
from hwprof.run.trials import Difference
from hwprof.run.variants import MatchedBoxes

OTHER_NUMBERS: Final = "type"
"""The group of variants that multiply other numbers than FP32: its peak is not theirs."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case; null: not known."""

    machine: str | None = None  # null: the one that the bench was begun on
    model: str
    weights: str | None
    variant: str
    imgsz: int | None  # null: of a model of the user's, which has its own inputs
    batch: int | None
    threads: int | None
    parameters: int | None = None
    size_bytes: int | None = None
    gflops: float | None = None  # of a forward
    forward_ns: int | None = None  # median
    forward_p90_ns: int | None = None
    forward_p99_ns: int | None = None
    forward_mad_ns: float | None = None
    images_per_s: float | None = None  # by the model alone; null: of a model of the user's
    end_to_end_per_s: float | None = None  # images, with all stages
    forwards_per_s: float | None = None
    gflops_per_s: float | None = None
    share_of_peak: float | None = None  # of what a large FP32 product attains with so many threads
    bound: str | None = None  # modelled: "compute" or "memory", by operational intensity against the roofs
    peak_bytes: int | None = None
    joules_per_image: float | None = None  # with all stages, of all that the meter measures; null: as images_per_s
    joules_per_forward: float | None = None
    joules_error: float | None = None  # half of the 95% interval, of the former, else of the latter
    watts: float | None = None  # meanwhile
    meter: str | None = None  # "package-0", "2 packages", "meter" of --power-command
    no_joules: str | None = None  # why there are none
    times_as_fast: float | None = None  # as the same in eager mode
    times_as_fast_error: float | None = None  # half of the 95% interval, by the medians of both cases' processes
    value_s: float | None = None  # how long pyperf's values took, the median
    outputs: Difference | None = None  # from eager mode's
    boxes: MatchedBoxes | None = None
    iterations: int | None = None
    others_share: float | None = None  # of all processors' time, that other programs used meanwhile
    notes: list[str] = []  # on the variant
    failure: str | None = None
    remedy: str | None = None


def rows_of(
    results: Sequence[Result], peaks: Peaks | None, of_machines: Mapping[str, Peaks | None] = MappingProxyType({})
) -> list[Row]:
    """In their order. ``peaks``: of the machine that the bench was begun on; ``of_machines``: of others, by name."""
    eager = {
        (one.machine, one.case.place): one for one in results if one.case.variant == EAGER and one.forward is not None
    }
    return [
        _row(one, eager.get((one.machine, one.case.place)), of_machines.get(one.machine) if one.machine else peaks)
        for one in results
    ]


def _row(result: Result, eager: Result | None, peaks: Peaks | None) -> Row:
    case, model, forward = result.case, result.model, result.forward
    spec = case.workload
    named: dict[str, Any] = {
        "machine": result.machine or None,
        "model": spec.model,
        "weights": spec.weights,
        "variant": case.variant,
        "imgsz": None if case.own else spec.imgsz,
        "batch": None if case.own else spec.batch,
    }
    if model is None or forward is None:
        failure = result.failure
        return Row(
            **named,
            threads=spec.threads,
            failure=failure.message if failure is not None else "not measured",
            remedy=failure.remedy if failure is not None else None,
        )
    if not case.own:
        named["imgsz"] = model.record.options.get("imgsz", spec.imgsz)
        named["batch"] = min(spec.batch, math.ceil(model.images / model.forwards))  # a video may have fewer frames
    fp32 = all(group_of(name) != OTHER_NUMBERS for name in spec.variants)
    roofs = roofs_of(peaks, model.record.threads) if fp32 else None
    variant = model.record.variant
    return Row(
        **named,
        threads=model.record.threads,
        parameters=model.record.parameters,
        size_bytes=model.size_bytes,
        gflops=result.gflops,
        forward_ns=forward.p50_ns,
        forward_p90_ns=forward.p90_ns,
        forward_p99_ns=forward.p99_ns,
        forward_mad_ns=forward.mad_ns,
        images_per_s=None if case.own else result.images_per_s,
        end_to_end_per_s=None if case.own else result.end_to_end_per_s,
        forwards_per_s=1e9 / forward.p50_ns,
        gflops_per_s=result.gflops_per_s,
        share_of_peak=_share(result, roofs),
        bound=_bound(result, roofs),
        peak_bytes=result.peak_bytes,
        **_energy(result),
        **(_beside(eager, result) if eager is not None and case.variant != EAGER else {}),
        value_s=result.value_s,
        outputs=variant.outputs if variant is not None else None,
        boxes=variant.boxes if variant is not None else None,
        iterations=forward.number,
        others_share=result.others_share,
        notes=model.notes,
    )


def _beside(eager: Result, result: Result) -> dict[str, Any]:
    if eager.forward is None or result.forward is None:
        return {}
    ratio = eager.forward.p50_ns / result.forward.p50_ns
    error = error_of_ratio(eager.process_p50_ns, result.process_p50_ns)
    return {"times_as_fast": ratio, "times_as_fast_error": None if error is None else ratio * error}


def _energy(result: Result) -> dict[str, Any]:
    """By the meter that the user has put there; else of all packages, else of what measures all of the machine."""
    if result.energy is None:
        return {}
    zones = result.energy.zones
    packages = [one for one in zones if one.zone.startswith(PACKAGE) and "/" not in one.zone]
    chosen = [one for one in zones if one.zone == METER] or packages or [one for one in zones if one.zone == PLATFORM]
    if not chosen:
        return {"no_joules": result.energy.absent.explanation if result.energy.absent is not None else None}
    joules = sum(one.joules for one in chosen)
    per_forward = result.model.images / result.model.forwards if result.model is not None else 1
    return {
        "joules_per_image": None if result.case.own else joules,
        "joules_per_forward": joules * per_forward,
        "joules_error": math.hypot(*(one.joules_error for one in chosen)),
        "watts": sum(one.watts for one in chosen),
        "meter": chosen[0].zone if len(chosen) == 1 else f"{len(chosen)} packages",
    }


def _share(result: Result, roofs: Roofs | None) -> float | None:
    if roofs is None or not roofs.gemm_gflops or result.gflops_per_s is None:
        return None
    return result.gflops_per_s / roofs.gemm_gflops


def _bound(result: Result, roofs: Roofs | None) -> str | None:
    """By the roofline model of the whole forward: FLOPs over the bytes that its layers read and write, against what
    the processor computes for each byte that DRAM gives."""
    model = result.model
    if roofs is None or model is None or not model.macs or not model.bytes or not roofs.gemm_gflops:
        return None
    gbytes = roofs.gbytes.get(DRAM)
    if not gbytes:
        return None
    return "compute" if 2 * model.macs / model.bytes >= roofs.gemm_gflops / gbytes else "memory"
