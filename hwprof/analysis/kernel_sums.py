"""Sampled kernels and threads of several layers together, from rows of the single ones: few, so no tables are needed.

A row is a mapping with the fields of the report's sampled kernels or threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hwprof.analysis import no_cpi
from hwprof.analysis.core_clock import Clock
from hwprof.analysis.intervals import wilson

KEYS: Final = ("kernel", "library", "domain")
THREAD_SUMS: Final = ("samples", "busy_ns", "wait_ns", "off_cpu_ns", "preempted_ns")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Whole:
    """What the shares are of: these layers together, and the run's whole."""

    cpu_ns: float
    samples: int
    few_samples: int  # with fewer, a kernel gets no CPI
    run_cpu_ns: float
    run_samples: int
    clock: Clock | None  # of CPI by time; None: cycles were counted


def others_share(threads: Sequence[Row]) -> float | None:
    """Of these threads' CPU time: that of those which do not work for the calling one."""
    cpu_ns = {one["tid"]: one["busy_ns"] + one["wait_ns"] for one in threads}
    others_ns = math.fsum(cpu_ns[one["tid"]] for one in threads if one["role"] == "other")
    whole_ns = math.fsum(cpu_ns.values())
    return others_ns / whole_ns if whole_ns else None


def kernels(rows: Sequence[Row], whole: Whole) -> list[dict[str, Any]]:
    """Summed by kernel, most processor time first.

    Shares are of the layers' processor time together; cycles an instruction and misses are those of the layers that
    have them.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in KEYS), []).append(row)
    found = [_kernel(key, own, whole) for key, own in groups.items()]
    return sorted(found, key=lambda row: (-row["cpu_ns"], row["kernel"]))


def threads(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Summed by thread, by its number; null where one of them is not known."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        known = found.setdefault(row["tid"], {**row, **dict.fromkeys(THREAD_SUMS, 0)})
        for name in THREAD_SUMS:
            known[name] = None if None in (known[name], row[name]) else known[name] + row[name]
    return [found[tid] for tid in sorted(found)]


def _kernel(key: tuple[Any, ...], rows: Sequence[Row], whole: Whole) -> dict[str, Any]:
    cpu_ns, samples = math.fsum(row["cpu_ns"] for row in rows), sum(row["samples"] for row in rows)
    counted = [row for row in rows if row["instructions"] is not None]
    share = cpu_ns / whole.cpu_ns
    low, high = wilson(share, whole.samples)
    misses = _rate(rows, "llc_mpki") if samples >= whole.few_samples else None
    return {
        **dict(zip(KEYS, key, strict=True)),
        "waits": rows[0]["waits"],
        "full_name": rows[0]["full_name"],
        "code_ranges": max(row["code_ranges"] for row in rows),
        "samples": samples,
        "cpu_ns": cpu_ns,
        "share": share,
        "share_low": low,
        "share_high": high,
        "share_of_kernel": math.fsum(row["share_of_kernel"] or 0.0 for row in rows),
        "instructions": math.fsum(row["instructions"] for row in counted) if counted else None,
        "llc_mpki": misses,
        **_cpi(counted, samples, whole),
    }


def _rate(rows: Sequence[Row], name: str) -> float | None:
    """A rate per instruction over the layers that have it."""
    known = [row for row in rows if row[name] is not None and row["instructions"] is not None]
    instructions = math.fsum(row["instructions"] for row in known)
    return math.fsum(row[name] * row["instructions"] for row in known) / instructions if instructions > 0 else None


def _cpi(counted: Sequence[Row], samples: int, whole: Whole) -> dict[str, Any]:
    """Measured: over the layers that have it. By time: over those whose instructions were counted, with the interval
    of their processor time in that of the run's whole; without own code and layers that did other work."""
    if whole.clock is None:
        few = samples < whole.few_samples
        return _without(no_cpi.FEW) if few else {**_without(None), "cpi": _rate(counted, "cpi")}
    left_out = (no_cpi.OWN_CODE, *no_cpi.OTHER_WORK)
    alike = [row for row in counted if row["cpi_missing"] not in left_out]
    reasons = [row["cpi_missing"] for row in counted if row["cpi_missing"] is not None]
    instructions, counted_ns = (math.fsum(row[name] for row in alike) for name in ("instructions", "cpu_ns"))
    if not alike or instructions <= 0 or counted_ns <= 0:
        return _without(reasons[0] if reasons else no_cpi.UNCOUNTED)
    if sum(row["samples"] for row in alike) < whole.few_samples:
        return _without(no_cpi.FEW)
    if no_cpi.TRACED in reasons:
        return _without(no_cpi.TRACED)
    cpi, share = counted_ns * whole.clock.ghz / instructions, counted_ns / whole.run_cpu_ns
    low, high = wilson(share, whole.run_samples)
    down, up = (math.hypot(end / share - 1, whole.clock.error or 0.0) for end in (low, high))
    if (down + up) / 2 >= no_cpi.MOST_ERROR:
        return _without(no_cpi.WIDE)
    return {"cpi": cpi, "cpi_low": cpi * (1 - down), "cpi_high": cpi * (1 + up), "cpi_missing": None}


def _without(reason: str | None) -> dict[str, Any]:
    return {"cpi": None, "cpi_low": None, "cpi_high": None, "cpi_missing": reason}
