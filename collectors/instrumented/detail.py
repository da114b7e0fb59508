"""What the collector instrumented reports of its data, for machines."""

from __future__ import annotations

import msgspec

from hwprof.collector.contract import Detail
from hwprof.run.details import InstrumentedDetail


class FridaDetail(Detail, kw_only=True, tag="frida"):
    """The frida that is installed."""

    frida: str


class CacheModelDetail(msgspec.Struct, kw_only=True):
    """The caches that were simulated, as SIZE/WAYS/LINE, and how much went through them."""

    l1d: str | None = None
    l2: str | None = None
    llc: str | None = None
    given: list[str] = []  # levels that are not this machine's
    sharing: int  # threads of a last level
    simulator: str
    accesses: int
    untraced: int
    log_entries: int


class EngineDetail(InstrumentedDetail, kw_only=True, tag="instrumented"):
    """What was instrumented, and how it was tried."""

    frida: str
    self_test: list[str]
    registers_tried: int
    mended_helpers: int
    blocks: list[int]  # by thread
    partly_decoded_blocks: int
    slow_increments: int
    kept_mappings: int
    log_entries: int
    cache_model: CacheModelDetail | None = None
