"""Records what happened when: spans of iterations, stages, layers and regions, and the counter edges of each.

The recorder knows nothing of torch: whoever watches a model wraps its calls with ``timed`` and ``counted``. Recording
is the hottest code in hwprof, so it only appends tuples; everything else happens in ``span_rows``.
"""

from __future__ import annotations

import time
from _thread import get_native_id
from array import array
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwprof.analysis.owners import own
from hwprof.collector.contract import Collector
from hwprof.session.begun_threads import BegunThread, BegunThreads
from hwprof.session.process_cpu_time import Charged, ProcessCpuTime, Reading, charged
from hwprof.session.span_rows import (
    CONTINUES,
    NO_EDGE,
    CountedSpans,
    Integers,
    LayerCalls,
    Record,
    Records,
    SpanColumns,
)

if TYPE_CHECKING:  # the process that is measured has no threads of a table library in it
    import polars as pl

    from hwprof.run.schema import SpanKind

GAP_NS: Final = 20_000
"""A layer that begins (or a module around layers that ends) this soon after the last full reading keeps the workers'
values of that reading.

Reading a worker that spins on another processor interrupts it (about 2 µs, and 20 µs in a virtual machine), so the
workers are read once between two adjacent layers, not twice. What a worker can do in the gap is bounded by its length.
"""


class AddedCall(NamedTuple):
    """Of a layer that somebody else has watched."""

    path: str
    begin_ns: int
    end_ns: int
    thread: int  # the kernel's number of it
    continues: bool  # another part of a call of that layer before


Forward = Callable[..., Any]
EdgeFunctions = tuple[Callable[[], int], Callable[[], int]]


class SpanRecorder:
    """Collects the spans of one pass. ``clock`` is CLOCK_MONOTONIC in nanoseconds; tests pass their own, and their own
    ``cpu_time`` of the process."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns, cpu_time: ProcessCpuTime | None = None) -> None:
        self._clock = clock
        self._cpu_time = cpu_time or ProcessCpuTime()
        self._cpu_begin: tuple[Reading, Reading] | None = None  # of this iteration: before and after its first edge
        self._charged = array("q")  # of each iteration its number and ``Charged``
        self._threads = BegunThreads(clock)
        self._begun: dict[int, list[BegunThread]] = {}  # by iteration
        self._counters: list[Collector] = []
        self._read_fully = _together([])
        self._edges: dict[bool, EdgeFunctions] = {}  # of leaves and of other modules
        self._edge_ns = array("q")  # when the workers were read: at a gap that is the edge before
        self._last_full_ns = 0
        self._iteration = -1
        self._warmup = False
        self._layers: list[tuple[int, int, int, int, int, int]] = []  # of this iteration; see `_layer_record`
        self._paths: list[str] = []
        self._calls: list[LayerCalls] = []  # of the iterations that are over
        self._numbers: dict[str, int] = {}  # of the paths in ``add_layers``
        self._added: list[LayerCalls] = []  # by ``add_layers``
        self._records = Records()  # of all else
        self._in_order: SpanColumns | None = None

    # Edges

    def count_with(self, counters: Sequence[Collector]) -> None:
        """From now on these counters are read at edges: before the first use of ``counted``."""
        self._counters = list(counters)
        self._edges.clear()
        self._read_fully = _together([counter.full_reader() for counter in counters])

    def watch_threads(self) -> None:
        """From now on it is noted which threads begin in an iteration: the counters count none of them there."""
        self._threads.watch()

    def close(self) -> None:
        """Nothing more is recorded."""
        self._threads.stop()

    def _full_edge(self) -> int:
        if not self._counters:
            return NO_EDGE
        self._read_fully()
        self._last_full_ns = self._clock()
        self._edge_ns.append(self._last_full_ns)
        return len(self._edge_ns) - 1

    def _edge_functions(self, *, leaf: bool) -> EdgeFunctions:
        """What a counted module calls when it is entered and left; both return the edge's number. The same ones for
        all: each of 10,000 modules would have two kilobytes of its own."""
        if leaf not in self._edges:
            self._edges[leaf] = self._new_edge_functions(leaf=leaf)
        return self._edges[leaf]

    def _new_edge_functions(self, *, leaf: bool) -> EdgeFunctions:
        clock, edge_ns, stamp = self._clock, self._edge_ns, self._edge_ns.append
        read_all = _together([counter.enter_reader() for counter in self._counters])
        read_at_end = _together([counter.leave_reader() for counter in self._counters])
        gap = _together([counter.gap_reader() for counter in self._counters])

        def enter() -> int:
            now = clock()
            if now - self._last_full_ns < GAP_NS:
                stamp(self._last_full_ns)
                gap()
            else:
                stamp(now)
                read_all()
            return len(edge_ns) - 1

        def leave() -> int:
            read_at_end()
            self._last_full_ns = now = clock()
            stamp(now)
            return len(edge_ns) - 1

        def leave_inner() -> int:
            if clock() - self._last_full_ns >= GAP_NS:
                return self._full_edge()
            stamp(self._last_full_ns)
            gap()
            return len(edge_ns) - 1

        return enter, leave if leaf else leave_inner

    def _first_edge(self) -> int:
        """Of an iteration, between two looks at the process's CPU time."""
        self._cpu_time.look()
        before = self._cpu_time.now()
        self._threads.forget()
        edge = self._full_edge()
        self._cpu_begin = before, self._cpu_time.now()
        return edge

    def _last_edge(self) -> int:
        """As the first one. Threads that are new are looked for when everything else is read: it takes time, too."""
        before = self._cpu_time.now()
        edge = self._full_edge()
        if begun := self._threads.taken():
            self._begun[self._iteration] = begun
        self._cpu_time.look()
        if self._cpu_begin is not None:
            self._charged.extend((self._iteration, *charged(self._cpu_begin, (before, self._cpu_time.now()))))
        self._cpu_begin = None
        return edge

    # Layers

    def path_number(self, path: str) -> int:
        """A number for a layer path, for ``timed`` and ``counted``."""
        self._paths.append(path)
        return len(self._paths) - 1

    def timed(self, path: int, forward: Forward) -> Forward:
        """``forward``, with its begin and end recorded at each call."""
        clock, append, tid = self._clock, self._append_layer(), get_native_id

        def forward_timed(*args: Any, **kwargs: Any) -> Any:
            begin = clock()
            try:
                return forward(*args, **kwargs)
            finally:
                append((path, begin, clock(), NO_EDGE, NO_EDGE, tid()))

        return forward_timed

    def counted(self, path: int, forward: Forward, *, leaf: bool = True) -> Forward:
        """``forward``, with begin, end and the counters at both recorded at each call; the reading is not timed, so the
        counts hold two looks at the clock. Where other modules are called in it, it is no ``leaf``."""
        clock, append, tid = self._clock, self._append_layer(), get_native_id
        enter, leave = self._edge_functions(leaf=leaf)

        def forward_counted(*args: Any, **kwargs: Any) -> Any:
            begin_edge = enter()
            begin = clock()
            try:
                return forward(*args, **kwargs)
            finally:
                end = clock()
                append((path, begin, end, begin_edge, leave(), tid()))

        return forward_counted

    def counted_alone(self, path: int, forward: Forward, *, leaf: bool = True) -> Forward:
        """As ``counted``, but nothing else happens between the readings: the counts are the call's to the last
        instruction, and the time includes the reading."""
        clock, append, tid = self._clock, self._append_layer(), get_native_id
        enter, leave = self._edge_functions(leaf=leaf)

        def forward_counted_alone(*args: Any, **kwargs: Any) -> Any:
            begin = clock()
            begin_edge = enter()
            try:
                return forward(*args, **kwargs)
            finally:
                end_edge = leave()
                append((path, begin, clock(), begin_edge, end_edge, tid()))

        return forward_counted_alone

    def _append_layer(self) -> Callable[[tuple[int, int, int, int, int, int]], None]:
        return self._layers.append  # the list object lives as long as the recorder: it is cleared, never replaced

    # Everything above layers

    @contextmanager
    def iteration(self, index: int, *, warmup: bool, event_set: int | None) -> Iterator[None]:
        """One iteration; layer calls inside belong to it."""
        self._iteration, self._warmup = index, warmup
        if event_set is not None:
            for counter in self._counters:
                counter.begin_iteration(event_set % len(counter.event_sets()))
        try:
            with self._span("iteration", "", self._first_edge, self._last_edge):
                yield
        finally:
            self._keep_layers()
            self._iteration, self._warmup = -1, False

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A stage of the pipeline."""
        with self._span("stage", name, self._full_edge, self._full_edge):
            yield

    @contextmanager
    def region(self, name: str) -> Iterator[None]:
        """A time of its own outside of iterations (set-up, idle)."""
        begin = self._clock()
        try:
            yield
        finally:
            self._add("region", name, begin, self._clock(), NO_EDGE, NO_EDGE)

    @contextmanager
    def _span(
        self, kind: SpanKind, path: str, first_edge: Callable[[], int], last_edge: Callable[[], int]
    ) -> Iterator[None]:
        # The reading lies outside of the span's time and inside of its parent's.
        counted = self._iteration >= 0 and not self._warmup
        begin_edge = first_edge() if counted else NO_EDGE
        begin = self._clock()
        try:
            yield
        finally:
            end = self._clock()
            end_edge = last_edge() if counted else NO_EDGE
            self._add(kind, path, begin, end, begin_edge, end_edge)

    def _add(self, kind: SpanKind, path: str, begin: int, end: int, begin_edge: int, end_edge: int) -> None:
        thread = get_native_id()
        self._records.append(kind, path, self._iteration, self._warmup, thread, begin, end, begin_edge, end_edge)

    def _keep_layers(self) -> None:
        if self._layers:
            self._calls.append(LayerCalls(self._iteration, warmup=self._warmup, calls=self._layers))
        self._layers.clear()

    def add_layers(self, iteration: int, calls: Sequence[AddedCall], *, warmup: bool) -> None:
        """Calls of layers in an iteration that somebody else has watched, when nothing more is recorded; inner ones
        before those around them."""
        numbers = self._numbers
        for call in calls:
            if call.path not in numbers:
                numbers[call.path] = self.path_number(call.path)
        rows = [
            (numbers[one.path], one.begin_ns, one.end_ns, CONTINUES if one.continues else NO_EDGE, NO_EDGE, one.thread)
            for one in calls
        ]
        self._added.append(LayerCalls(iteration, warmup=warmup, calls=rows))

    def added_paths(self) -> frozenset[str]:
        """Those of ``add_layers``."""
        return frozenset(self._numbers)

    def iteration_times(self) -> Integers:
        """Number, whether it warms up, begin and end of each, in their order."""
        return self._records.iterations()

    # Results

    def counted_spans(self) -> CountedSpans:
        """The spans between two counter edges; ``span`` is the row's number in ``table``."""
        return self._columns().counted()

    def windows_ns(self) -> NDArray[np.int64]:
        """For each of ``counted_spans``, the wall time between the two readings of the workers' counters: what a
        counted CPU time is to be divided by. It is a little longer than the span, whose time excludes the reading."""
        read_ns = np.array(self._edge_ns, dtype=np.int64)
        return np.diff(read_ns[self.counted_spans().edges], axis=1)[:, 0]

    def cpu_times(self) -> dict[int, Charged]:
        """The process's CPU time in each iteration after warm-up. What is counted between the edges of its threads, if
        of all, lies between its bounds."""
        numbers = iter(self._charged)
        return {iteration: Charged(*bounds) for iteration, *bounds in zip(*[numbers] * 4, strict=True)}

    def begun_threads(self) -> dict[int, list[BegunThread]]:
        """By iteration, where there were any."""
        return self._begun

    def table(self, pid: int) -> pl.DataFrame:
        """The ``spans`` rows, without ``pass``, in order of begin."""
        return self._columns().table(pid)

    def layer_calls(self, iteration: int, paths: Container[str]) -> int:
        """How many calls of these layers were recorded in an iteration."""
        return sum(record.path in paths for record in self._layers_of(iteration))

    def own_times_ns(self, iteration: int, leaves: Container[str]) -> dict[str, int]:
        """How long the calls of each layer took together, and what each module around them did itself, by owner; of the
        last iteration that was recorded. Calls are recorded when they end, so those within one come before it."""
        times: dict[str, int] = {}
        ended: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # by thread: begin and time, still unclaimed
        for record in self._layers_of(iteration):
            elapsed_ns = own_ns = record.end_ns - record.begin_ns
            within = ended[record.thread]
            while within and within[-1][0] >= record.begin_ns:
                own_ns -= within.pop()[1]
            within.append((record.begin_ns, elapsed_ns))
            owner = record.path if record.path in leaves else own(record.path)
            times[owner] = times.get(owner, 0) + own_ns
        return times

    def calling_threads(self) -> int:
        """From how many threads layers were called."""
        return len(set().union(*(calls.threads() for calls in self._calls)))

    def _layers_of(self, iteration: int) -> Iterator[Record]:
        """The calls of layers in an iteration, looked for from the last one on."""
        found = next((calls for calls in reversed(self._calls) if calls.iteration == iteration), None)
        return found.records(self._paths) if found is not None else iter(())

    def _columns(self) -> SpanColumns:
        """Of all of them; they are asked for several times when nothing more comes."""
        if self._in_order is None or len(self._in_order) != self._number():
            # Those around what was added were watched here: of equal ones the later is the outer one.
            self._in_order = SpanColumns(self._records, [*self._added, *self._calls], self._paths)
        return self._in_order

    def _number(self) -> int:
        return len(self._records) + sum(map(len, self._added)) + sum(map(len, self._calls))


def _together(functions: list[Callable[[], None]]) -> Callable[[], None]:
    """One function that calls all; no detour for a single one."""
    if len(functions) == 1:
        return functions[0]

    def call_all() -> None:
        for function in functions:
            function()

    return call_all
