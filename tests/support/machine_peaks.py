"""The peaks of a made-up machine."""

from __future__ import annotations

from typing import Final

import msgspec

from hwprof.run.peaks import DRAM, NotMeasured, Peak, Peaks


def peak(what: str, threads: int, value: float, level: str | None = None, **more: object) -> Peak:
    unit = "ns" if what == "latency" else "GB/s" if level else "GHz" if what == "clock" else "GFLOP/s"
    given = {"worst": value, "repetitions": 5, "how": "512-bit", "unit": unit, "bytes": 12288} | more
    return Peak(what=what, level=level, threads=threads, value=value, **given)  # type: ignore[arg-type]


FOUND = Peaks(
    created="2026-11-25T22:00:00+00:00",
    machine="0" * 16,
    processor="AMD EPYC",
    threads=[1, 2],
    peaks=[
        *(peak("fp32", n, 116.0 * n, cores=float(n)) for n in (1, 2)),
        *(peak("gemm-fp32", n, 100.0 * n) for n in (1, 2)),
        *(
            peak(what, n, 200.0 * n, level)
            for n in (1, 2)
            for level in (DRAM, "L1", "L2")
            for what in ("triad", "read")
        ),
        *(peak("triad-nt", n, 30.0, DRAM) for n in (1, 2)),
        *(peak("latency", 1, ns, level) for level, ns in (("L1", 1.1), ("L2", 4.0), (DRAM, 140.0))),
        peak("clock", 1, 3.6),
    ],
    missing=[NotMeasured(what="bf16", reason="no instructions for it", remedy="another processor")],
    others_share=0.01,
    built_by="12.2.0",
)

ZEN: Final = msgspec.structs.replace(
    FOUND,
    peaks=[
        *(peak("fp32", n, 260.0 * n) for n in (1, 2)),
        *(peak("gemm-fp32", n, 150.0 * n) for n in (1, 2)),
        *(
            peak("read", n, gbytes * n, level)
            for n in (1, 2)
            for level, gbytes in (("L1", 590.0), ("L2", 190.0), ("L3", 115.0), (DRAM, 54.0))
        ),
        peak("latency", 1, 128.0, DRAM),
    ],
)
"""Rates like those of a machine that there is."""
