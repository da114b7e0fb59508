"""The memory that Python shares with the C module: the structures of ``native/layout.h``, and numpy's views of them."""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from typing import Final

import numpy as np
import numpy.typing as npt

from collectors.instrumented.arena import Arena, give_back, reserve
from collectors.instrumented.facts import Fact
from collectors.instrumented.signal_handlers import SIGNALS

MAX_BLOCKS: Final = 524_288
MAX_CONTEXTS: Final = 1024
MAX_EDGES: Final = 4_194_304
LOG_ENTRIES: Final = 16_777_216
CODE_PAGES: Final = 65_536
SLOTS: Final = 8
STUB_REGIONS: Final = 64
MAX_OWN_THREADS: Final = 64
SHOWN_BYTES: Final = 16

SPARE_CONTEXTS: Final = 16
MAPS_READER_BYTES: Final = 16_384
COUNTERS_BYTES: Final = 8 * (SLOTS + MAX_BLOCKS)

BLOCK: Final = np.dtype(
    [
        *(("start", np.uint64), ("size", np.uint32), ("partly_decoded", np.uint32), ("hash", np.uint64)),
        ("facts", np.uint32, (len(Fact),)),
    ],
    align=True,
)
LOG_ENTRY: Final = np.dtype([("context", np.uint32), ("block", np.uint32), ("executions", np.uint64)])

Blocks = npt.NDArray[np.void]
Entries = npt.NDArray[np.void]


class Context(ctypes.Structure):
    """An instrumented thread."""

    key: int
    tid: int
    blocks_used: int
    counters: int
    seen: int
    blocks: int
    epoch: int
    mended: int
    slow_increments: int
    lost_blocks: int
    first_block: int
    watches: int
    watches_used: int
    copied_bytes: int
    copied_bytes_used: int
    cpu_ns: int
    handlers_ns: int
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "key",
            "tid",
            "blocks_used",
            "counters",
            "seen",
            "blocks",
            "epoch",
            "mended",
            "slow_increments",
            "lost_blocks",
            "first_block",
            "watches",
            "watches_used",
            "copied_bytes",
            "copied_bytes_used",
            "cpu_ns",
            "handlers_ns",
            "in_handler",
        )
    ]


class Control(ctypes.Structure):
    """Everything that the C module keeps."""

    contexts_used: int
    epoch: int
    mend_epilog: int
    refused_contexts: int
    undecoded: int
    undecoded_address: int
    undecoded_before: int
    undecoded_shown: int
    undecoded_bytes: ctypes.Array[ctypes.c_uint8]
    kept_mappings: int
    edges: int
    log_given: int
    log_used: int
    log_overflowed: int
    log_ends: int
    edge_times: int
    edge_cpu_times: int
    edge_uncounted_times: int
    task_folder: int
    own_threads_used: int
    own_threads: ctypes.Array[ctypes.c_uint64]
    log: int
    lock: int
    counters: int
    counters_room: int
    rewritten: int
    rewritten_address: int
    unguarded: int
    memory_file: int
    fault_handler: int
    handlers: ctypes.Array[ctypes.c_uint64]
    handlers_watched: ctypes.Array[ctypes.c_uint8]
    contexts: ctypes.Array[Context]
    _fields_ = [
        *(
            (name, ctypes.c_uint64)
            for name in (
                "contexts_used",
                "epoch",
                "mend_epilog",
                "refused_contexts",
                "undecoded",
                "undecoded_address",
                "undecoded_before",
                "undecoded_shown",
            )
        ),
        ("undecoded_bytes", ctypes.c_uint8 * (2 * SHOWN_BYTES)),
        *(
            (name, ctypes.c_uint64)
            for name in (
                "kept_mappings",
                "edges",
                "log_given",
                "log_used",
                "log_overflowed",
                "log_ends",
                "edge_times",
                "edge_cpu_times",
                "edge_uncounted_times",
                "task_folder",
                "own_threads_used",
            )
        ),
        ("own_threads", ctypes.c_uint64 * MAX_OWN_THREADS),
        ("own_cpu_ns", ctypes.c_int64 * MAX_OWN_THREADS),
        *(
            (name, ctypes.c_uint64)
            for name in (
                "log",
                "lock",
                "counters",
                "counters_room",
                "rewritten",
                "rewritten_address",
                "unguarded",
                "unguarding",
                "read_only_pages",
                "protecting",
                "memory_file",
                "fault_handler",
            )
        ),
        ("handlers", ctypes.c_uint64 * SIGNALS),
        ("handlers_watched", ctypes.c_uint8 * SIGNALS),
        ("mapping", ctypes.c_uint64 * 5),
        ("stub_regions", ctypes.c_uint64),
        ("stubs", ctypes.c_uint64 * STUB_REGIONS),
        ("stubs_used", ctypes.c_uint64 * STUB_REGIONS),
        ("contexts", Context * MAX_CONTEXTS),
    ]


class SharedMemory:
    """Allocated once; it lives as long as the process may run instrumented code."""

    def __init__(self, *, mend_epilog: bool, threads: int) -> None:
        """``threads``: how many will be instrumented, or so. Raises ``OSError`` where there is no address space."""
        room = min(MAX_CONTEXTS, 2 * threads + SPARE_CONTEXTS)
        self.arena = Arena(room * COUNTERS_BYTES)
        self.control = Control(mend_epilog=mend_epilog, counters=self.arena.counters, counters_room=room)
        self.code_pages = (ctypes.c_uint64 * CODE_PAGES)()
        self.page_states = (ctypes.c_uint8 * CODE_PAGES)()
        self.page_faults = (ctypes.c_uint8 * CODE_PAGES)()
        self.maps_reader = (ctypes.c_uint8 * MAPS_READER_BYTES)()
        self._lock = ctypes.c_uint64()
        self.control.log = reserve(LOG_ENTRIES * LOG_ENTRY.itemsize)
        self.control.log_ends = reserve(MAX_EDGES * 8)
        self.control.edge_times = reserve(MAX_EDGES * 8)
        self.control.edge_cpu_times = reserve(MAX_EDGES * 8)
        self.control.edge_uncounted_times = reserve(MAX_EDGES * 8)
        self.control.lock = ctypes.addressof(self._lock)

    def contexts(self) -> list[Context]:
        """The instrumented threads, in order of first sight."""
        return list(self.control.contexts[: self.control.contexts_used])

    def blocks(self, context: Context) -> Blocks:
        """The blocks of a thread, a copy: shape (blocks,), dtype ``BLOCK``."""
        size = context.blocks_used * BLOCK.itemsize
        return np.frombuffer(ctypes.string_at(context.blocks, size), dtype=BLOCK)

    def log(self) -> Entries:
        """The log's entries, as long as it is not taken: shape (entries,), dtype ``LOG_ENTRY``."""
        return np.frombuffer(self.log_bytes(), LOG_ENTRY)

    def log_bytes(self) -> memoryview:
        """The same."""
        size = self.control.log_used * LOG_ENTRY.itemsize
        return memoryview((ctypes.c_char * size).from_address(self.control.log)).cast("B")

    def log_is_taken(self) -> None:
        """Whoever calls this has kept what there is, and it begins anew."""
        self.control.log_given += self.control.log_used
        self.control.log_used = 0

    def give_log_back(self) -> None:
        """Of a log that was taken the memory is not needed for now."""
        give_back(self.control.log, LOG_ENTRIES * LOG_ENTRY.itemsize)

    def log_ends(self) -> npt.NDArray[np.int64]:
        """For each edge, how many entries the log had after it."""
        return self._by_edge(self.control.log_ends)

    def edge_times(self) -> npt.NDArray[np.int64]:
        """When each edge was, on CLOCK_MONOTONIC in nanoseconds."""
        return self._by_edge(self.control.edge_times)

    def edge_cpu_times(self) -> npt.NDArray[np.int64]:
        """For each edge the CPU time of the process until then, and that part of it whose code is not counted:
        shape (edges, 2), in nanoseconds; -1 of the process: not known."""
        addresses = (self.control.edge_cpu_times, self.control.edge_uncounted_times)
        return np.stack([self._by_edge(address) for address in addresses], axis=-1)

    def own_threads(self, tids: Collection[int]) -> None:
        """These are the engine's: what they do is nobody's work."""
        for number, tid in enumerate(sorted(tids)[:MAX_OWN_THREADS]):
            self.control.own_threads[number] = tid
            self.control.own_threads_used = number + 1

    def _by_edge(self, address: int) -> npt.NDArray[np.int64]:
        return np.frombuffer(ctypes.string_at(address, self.control.edges * 8), dtype=np.int64)

    def sizes(self) -> list[int]:
        """Of the structures, in the order in which the C module lists its own."""
        return [ctypes.sizeof(Control), ctypes.sizeof(Context), BLOCK.itemsize]
