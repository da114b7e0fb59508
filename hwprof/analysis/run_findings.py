"""The findings of a run: what rules look at in it, and what they find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hwprof.analysis import layer_memory
from hwprof.analysis.findings.facts import PAGE_FAULTS, SETS_THREADS, Facts, Finding, Kernel, Layer, Share
from hwprof.analysis.findings.rules import find_all
from hwprof.analysis.main_pass_facts import cost_of, kernel_times, layer_times, timed_faults, times_within
from hwprof.analysis.model_facts import is_compiled, model_facts
from hwprof.analysis.more_samples import more_samples
from hwprof.analysis.owners import INFERENCE, WHOLE
from hwprof.analysis.roofline import product_types, roofs_of
from hwprof.analysis.sampled_kernels import kernel_table
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.thread_facts import processors, thread_facts
from hwprof.analysis.time_budget import awaited, nested, without_awaited
from hwprof.run.peaks import NEW_PAGE
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis
    from hwprof.run.peaks import Peaks

MOST_KERNELS: Final = 100
NEARLY_ALL: Final = 0.9
MOST_OF: Final = 0.5
"""Of the new pages has torch to allocate, for them to be its own."""

LEAST_OF_KERNEL: Final = 0.1
"""Of a kernel's processor time has a layer that it is said to be in."""

HALF: Final = frozenset({"bfloat16", "float16"})
CALL_NS: Final = 30_000
"""What the interpreter does to call a layer and its operators while these are recorded, at most: 22 µs were seen of a
Linear and its ReLU on a slow machine."""


def run_findings(analysis: RunAnalysis) -> list[Finding] | Unavailable:
    """What could win most first, from the pass that the samples are of and the main pass, where the thread that calls
    the model was sampled, and more than by chance."""
    if analysis.time_budget is None or analysis.figures is None:
        return Unavailable("the thread that calls the model was not sampled")
    whole, *_ = nested(analysis.time_budget)
    if whole["samples"] < FEW_SAMPLES and not _hardly_there(whole):
        number = "one sample" if whole["samples"] == 1 else f"{whole['samples']} samples"
        return Unavailable(f"{number} of the inference: too few", _more(analysis, whole["samples"]))
    return find_all(_facts(analysis))


def _more(analysis: RunAnalysis, number: int) -> str | None:
    return more_samples(analysis.sampled, number) if analysis.sampled is not None else None


def _hardly_there(whole: dict[str, Any]) -> bool:
    """Whether the calling thread slept nearly all the time, which switches tell, and no samples."""
    asleep: float = sum(part["share"] for part in whole["parts"] if not part["samples"])
    return asleep >= NEARLY_ALL


def _facts(analysis: RunAnalysis) -> Facts:
    assert analysis.time_budget is not None and analysis.thread_times is not None
    whole, *layers = without_awaited(nested(analysis.time_budget), awaited(analysis.thread_times))
    under = analysis.roofline
    bounds = {one.path: one.bound for one in under.rows} if not isinstance(under, Unavailable) else {}
    workload = analysis.run.manifest.workload
    variants = workload.variant.names if workload is not None and workload.variant is not None else ()
    times, faults = layer_times(analysis), timed_faults(analysis)
    return Facts(
        parts={part["part"]: _share(part) for part in whole["parts"]},
        layers=[
            Layer(
                one["path"],
                times.get(one["path"], one["elapsed_ns"] / whole["elapsed_ns"]),
                {part["part"]: part["share"] for part in one["parts"]},
                bounds.get(one["path"]),
            )
            for one in layers
        ],
        kernels=_kernels(analysis, times),
        stages=stage_shares(analysis),
        timed_new_pages=cost_of(faults, analysis),
        **memory_facts(analysis, whole, faults),
        **further_facts(analysis),
        vendor=analysis.machine.vendor,
        virtual=analysis.machine.hypervisor is not None,
        **peak_facts(analysis.run.manifest.peaks, workload.threads if workload is not None else 1),
        threads=workload.threads if workload is not None else 1,
        processors=processors(analysis.machine),
        convolutions=convolutions(analysis.modules),
        compiled=is_compiled(analysis.modules) or not SETS_THREADS.keys().isdisjoint(variants),
        variants=variants,
        python_of_calls=_calls(analysis.modules) * CALL_NS / whole["elapsed_ns"] if whole["elapsed_ns"] else 0.0,
        emulated=emulated(analysis.modules, analysis.run.manifest.peaks),
    )


def _calls(modules: pl.DataFrame) -> int:
    """Of leaf layers in an iteration, as far as they are known."""
    return int(modules.filter("leaf")["calls"].sum() or 0)


def _of_calling_thread(whole: dict[str, Any], name: str) -> float:
    """Of what all threads spend in a part of the budget, what the calling thread does: they do it side by side."""
    found = next((part for part in whole["parts"] if part["part"] == name and part["threads_ns"] > 0), None)
    return min(1.0, found["ns"] / found["threads_ns"]) if found is not None else 1.0


def _share(row: dict[str, Any]) -> Share:
    return Share(row["share"], row["share_low"] or 0.0, row["share_high"] or row["share"])


def _kernels(analysis: RunAnalysis, times: Mapping[str, float]) -> list[Kernel]:
    assert analysis.sampled is not None
    rows = kernel_table(analysis.sampled.inside, analysis.sampled.kernels).head(MOST_KERNELS).to_dicts()
    mostly = pl.col("layer").is_not_null() & (pl.col("share_of_kernel") >= LEAST_OF_KERNEL)
    most = (
        analysis.sampled.by_layer.filter(mostly)
        .sort("share_of_kernel", "layer", descending=[True, False])
        .select("kernel", "layer")
    )
    of_time = kernel_times(analysis.sampled.by_layer, times)
    within = times_within(analysis.sampled.by_layer, times)
    named: dict[int, list[str]] = {}
    for kernel, layer in most.iter_rows():
        named.setdefault(kernel, []).append(layer)
    return [
        Kernel(
            row["name"] or "",
            row["library"] or "",
            _share(row),
            row["domain"] or "",
            named.get(row["kernel"], []),
            of_time.get(row["kernel"], 0.0),
            within.get(row["kernel"], 1.0),
        )
        for row in rows
        if row["share"] is not None
    ]


def convolutions(modules: pl.DataFrame) -> int:
    """How many layers convolve (the table ``layers``)."""
    return modules.filter(pl.col("convolution").is_not_null()).unique("path").height


def stage_shares(analysis: RunAnalysis) -> dict[str, float]:
    """Of an iteration, of the main pass."""
    if analysis.figures is None:
        return {}
    rows = analysis.figures.stages.rows.select("owner", "inside", "total_ns")
    whole_ns = float(rows.filter(pl.col("inside").is_null())["total_ns"].sum() or 0)
    shares = {owner: ns / whole_ns for owner, _, ns in rows.iter_rows() if whole_ns}
    shares.pop(INFERENCE, None)
    return shares


def further_facts(analysis: RunAnalysis) -> dict[str, Any]:
    """Those of threads and of the model."""
    return {**thread_facts(analysis), **model_facts(analysis)}


def peak_facts(peaks: Peaks | None, threads: int) -> dict[str, Any]:
    """``gemm_of_roof`` and ``bfloat16`` of ``findings.Facts``."""
    if peaks is None:
        return {}
    roofs = roofs_of(peaks, threads) if not peaks.disturbed else None  # each roof lacks another part
    gemm = roofs.gemm_gflops if roofs is not None else None
    return {
        "gemm_of_roof": gemm / roofs.gflops if roofs is not None and gemm is not None else None,
        "bfloat16": multiplies_bfloat16(peaks),
    }


def multiplies_bfloat16(peaks: Peaks | None) -> bool:
    """Whether the processor has instructions for it; as long as nobody measured that, yes."""
    return peaks is None or any(peaks.find(what) is not None for what in ("bf16", "gemm-bf16"))


def emulated(modules: pl.DataFrame, peaks: Peaks | None) -> dict[str, str]:
    """Of the layers that multiply what the processor does not, the types (the table ``layers``)."""
    if multiplies_bfloat16(peaks):
        return {}
    found = {path: HALF & set(numbers.split(", ")) for path, numbers in product_types(modules).items()}
    return {path: ", ".join(sorted(half)) for path, half in found.items() if half and path is not None}


def memory_facts(analysis: RunAnalysis, whole: dict[str, Any], timed: float | None) -> dict[str, Any]:
    """``anew``, ``faults``, ``torch_takes_them``, ``new_pages`` and ``malloc`` of ``findings.Facts``. ``whole``: the
    inference's budget; ``timed``: page faults of a timed iteration."""
    found = analysis.memory.found
    if found is None or isinstance(found.tables, Unavailable):
        return {}
    rows, _ = found.tables
    peaks = analysis.run.manifest.peaks
    page = peaks.find(NEW_PAGE) if peaks is not None else None
    faults = dict(rows.drop_nulls("faults").select("layer", "faults").iter_rows())
    allocated_bytes = rows.filter(layer=WHOLE)["allocated_bytes"].sum() or 0
    page_bytes = found.process.page_bytes if found.process is not None else None
    timed_bytes = timed * page_bytes if timed is not None and page_bytes is not None else None
    each_ns = page.value * _of_calling_thread(whole, PAGE_FAULTS) if page is not None else 0.0
    shares = {path: number * each_ns / whole["elapsed_ns"] for path, number in faults.items() if each_ns}
    return {
        "anew": layer_memory.anew(rows),
        "faults": faults.get(WHOLE),
        "torch_takes_them": timed_bytes is not None and allocated_bytes >= MOST_OF * timed_bytes,
        "new_pages": {None if path == WHOLE else path: share for path, share in shares.items()},
        "malloc": found.allocator.allocator if found.allocator is not None else None,
    }
