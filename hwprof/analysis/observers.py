"""Which code is there because somebody looks: no layer is about it."""

from __future__ import annotations

from typing import Final

NAMES: Final = (
    "torch::profiler::", "perf_", "__perf_", "native_write_msr", "native_read_pmc", "smp_call_function", "x86_pmu_",
    "amd_pmu_", "intel_pmu_",
)  # fmt: skip
"""How names of profilers' own functions begin, and of what reads counters."""


def observes(kernel: str) -> bool:
    """Whether a function is one of those."""
    return kernel.startswith(NAMES)
