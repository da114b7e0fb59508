"""The GEMM peak: square matrix products by torch, as a layer's library does them at best.

``python -P -m hwprof.workload.gemm 1 4`` prints a list of ``Peak`` as JSON, with 1 thread and with 4.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import torch

from hwprof.run.peaks import Peak

SIZES: Final = (1024, 2048, 4096, 8192)
LONG_ENOUGH_S: Final = 0.03
"""Of a product: shorter ones are made larger."""

EACH_S: Final = 0.15
LEAST: Final = 5
MOST: Final = 40
"""Products of a size."""


def measure(threads: Sequence[int]) -> list[Peak]:
    """With each of so many threads, in FP32, and in BF16 where oneDNN has kernels of its own for it."""
    kinds = [("gemm-fp32", torch.float32)]
    if _has_bfloat16():
        kinds.append(("gemm-bf16", torch.bfloat16))
    found = []
    with torch.inference_mode():
        for number in threads:
            torch.set_num_threads(number)
            found += [_peak(what, kind, number) for what, kind in kinds]
    alone = {one.what: one.value for one in found if one.threads == 1}
    return [msgspec.structs.replace(one, cores=one.value / alone[one.what]) if one.what in alone else one
            for one in found]  # fmt: skip


def _peak(what: str, kind: torch.dtype, threads: int) -> Peak:
    rates, size = [], SIZES[0]
    for size in SIZES:
        rates = [2 * size**3 / seconds / 1e9 for seconds in _products(size, kind)]
        if 2 * size**3 / max(rates) / 1e9 >= LONG_ENOUGH_S:
            break
    return Peak(
        what=what,
        threads=threads,
        value=max(rates),
        unit="GFLOP/s",
        worst=min(rates),
        repetitions=len(rates),
        how=f"torch {torch.__version__}",
        bytes=3 * size * size * kind.itemsize,
    )


def _products(size: int, kind: torch.dtype) -> Iterator[float]:
    """Seconds of each, after one that makes the library's buffers and threads."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.rand(size, size, generator=generator).to(kind) for _ in range(2))
    c = torch.empty(size, size, dtype=kind)
    torch.mm(a, b, out=c)
    end, done = time.perf_counter() + EACH_S, 0
    while done < LEAST or (done < MOST and time.perf_counter() < end):
        begin = time.perf_counter()
        torch.mm(a, b, out=c)
        yield time.perf_counter() - begin
        done += 1
        if done >= 2 and time.perf_counter() > end + 4 * EACH_S:
            return


def _has_bfloat16() -> bool:
    """Elsewhere a product in BF16 is a conversion and one in FP32."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


if __name__ == "__main__":
    print(msgspec.json.encode(measure([int(one) for one in sys.argv[1:]])).decode())
