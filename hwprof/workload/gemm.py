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

from hwprof.run.peaks import Peak, better

SIZES: Final = (1024, 2048, 4096, 8192)
LONG_ENOUGH_S: Final = 0.02
"""Of a product: shorter ones are made larger."""

ROUNDS: Final = 2
"""At different times."""

EACH_S: Final = {torch.float32: 0.15, torch.bfloat16: 0.05}
LEAST: Final = 3
MOST: Final = 40
"""Products of a size."""

SLOW_S: Final = 0.6
"""So much longer than planned ``LEAST`` products may take."""


def measure(threads: Sequence[int]) -> list[Peak]:
    """With each of so many threads, in FP32, and in BF16 where oneDNN has kernels of its own for it."""
    kinds = [("gemm-fp32", torch.float32)]
    if _has_bfloat16():
        kinds.append(("gemm-bf16", torch.bfloat16))
    found: dict[tuple[str, int], Peak] = {}
    with torch.inference_mode():
        for _ in range(ROUNDS):
            for number in threads:
                torch.set_num_threads(number)
                for what, kind in kinds:
                    one = _peak(what, kind, number)
                    found[what, number] = better(found[what, number], one) if (what, number) in found else one
    return list(found.values())


def _peak(what: str, kind: torch.dtype, threads: int) -> Peak:
    by_size: dict[int, list[float]] = {}
    for size in SIZES:
        by_size[size] = [2 * size**3 / seconds / 1e9 for seconds in _products(size, kind)]
        if 2 * size**3 / max(by_size[size]) / 1e9 >= LONG_ENOUGH_S:
            break
    size, rates = max(by_size.items(), key=lambda item: max(item[1]))
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
    end, done = time.perf_counter() + EACH_S[kind], 0
    while done < LEAST or (done < MOST and time.perf_counter() < end):
        begin = time.perf_counter()
        torch.mm(a, b, out=c)
        yield time.perf_counter() - begin
        done += 1
        if done >= 2 and time.perf_counter() > end + SLOW_S:
            return


def _has_bfloat16() -> bool:
    """Elsewhere a product in BF16 is a conversion and one in FP32."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


if __name__ == "__main__":
    print(msgspec.json.encode(measure([int(one) for one in sys.argv[1:]])).decode())
