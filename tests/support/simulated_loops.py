"""Loops of machine code that a process of its own runs under the cache model: how it is told, what it says."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from tests.support.instrumented_process import child

LINE = 64
FEW = 8
"""Accesses of the return, and of the little else that belongs to no library."""

CACHES = "l1=4K/4,l2=32K/8,llc=256K/16"
"""16, 64 and 256 sets: small, so that loops stay short."""

BEGIN = """
    import tempfile
    import polars as pl
    from collectors.instrumented.collector import InstrumentedCollector
    from collectors.shared.machine_code import Function
    from hwprof.collector.contract import CountedSpan, PassContext
    # rdi: where, rsi: bytes from one load to the next, rdx: loads of a round, rcx: rounds
    #   outer: mov rax, rdi; mov r8, rdx; inner: mov r9, [rax]; add rax, rsi; dec r8; jnz inner; dec rcx; jnz outer; ret
    WALK = "4889f8 4989d0 4c8b08 4801f0 49ffc8 75f5 48ffc9 75ea c3"
    # rdi: to, rsi: from, rdx: bytes.   mov rcx, rdx; rep movsb; ret
    COPY = "4889d1 f3a4 c3"
    function = lambda code, *arguments: Function(bytes.fromhex(code), None, *arguments)
    number = ctypes.c_size_t
    room = ctypes.create_string_buffer(9 << 20)
    memory = (ctypes.addressof(room) + (1 << 20) - 1) & -(1 << 20)

    class Counting:
        \"\"\"Counts pieces of work by the product's own collector; what its kernels of no library did.\"\"\"

        def __init__(self, **options):
            self.collector = InstrumentedCollector()
            raw = Path(tempfile.mkdtemp())
            self.collector.start(PassContext("instrumented", os.getpid(), os.getpid(), raw, options))
            self.edge = self.collector.full_reader()
            self.edges = 0

        def __call__(self, work):
            self.edge()
            work()
            self.edge()
            self.edges += 2

        def stop(self):
            self.collected = self.collector.stop()
            self.spans = [CountedSpan(n, 0, 2 * n, 2 * n + 1) for n in range(self.edges // 2)]
            tables = self.collector.kernel_tables(self.spans)
            jit = tables["kernels"].filter(domain="jit").select("kernel")
            rows = tables["kernel_counts"].join(jit, on="kernel", how="semi")
            simulated = rows.filter(provenance="simulated").group_by("span", "event").agg(pl.col("value").sum())
            found = [{} for _ in self.spans]
            for span, event, value in simulated.iter_rows():
                found[span][event.removeprefix("cache-model.")] = value
            for span, like in tables["repeated_spans"].select("span", "like").iter_rows():
                found[span] = found[like]
            return found
"""


def counted(script: str, threads: int = 1) -> dict[str, Any]:
    """What a process says that counts its own loops."""
    return child(textwrap.dedent(BEGIN) + textwrap.dedent(script), threads)


def misses(found: Mapping[str, int]) -> list[int]:
    """By level."""
    return [found.get(f"{level}-misses", 0) for level in ("l1d", "l2", "llc")]
