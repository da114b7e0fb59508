"""The lifecycle of every collector that counts by thread; what it counts with is its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

from collectors.shared.counting.readings import ENTER, FULL, GAP, LEAVE, Readings
from collectors.shared.counting.tables import counts_table
from collectors.shared.counting.threads import Counters, ThreadSet, cpu_time_ns
from hwprof.collector.contract import Collector, CountedSpan, Note, NoteKind, PassContext

if TYPE_CHECKING:  # imported when counting is over: it brings threads of its own
    import polars as pl

ACTIVE_NS: Final = 50_000
"""A thread with less processor time than this in the last iteration is idle: not read at every edge."""

AT_ONCE: Final = 4096
"""Spans whose counts are made at a time: of an hour there are 300,000, and on the way to a row ten times its bytes."""


@dataclass(frozen=True)
class Layout:
    """What the reads of a thread give while a set counts: ``Readings.begin_interval`` explains the fields."""

    events: Sequence[int]
    sizes: Sequence[int]
    turns: Sequence[int] = ()
    every_core: bool = True


class CountingCollector(Collector, Generic[Counters]):
    """A counter over the threads of this process. A subclass opens their counters (``_open`` and then
    ``_begin_interval`` when it starts), and defines how sets are switched and read."""

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}
        self._context: PassContext | None = None
        self._thread_set: ThreadSet[Counters] | None = None
        self._readings = Readings()
        self._set = 0
        self._edges_seen = 0  # at the last look at the threads' activity
        self._notes: list[Note] = []  # those of ``Collected``, which ``counts`` may add to afterwards

    # --- What counts

    @abstractmethod
    def _event_names(self) -> Sequence[str]:
        """Every counted event once."""

    @abstractmethod
    def _switch(self, thread_set: ThreadSet[Counters], new: Sequence[Counters], event_set: int) -> None:
        """From now on every thread counts that set; ``new`` ones have counted nothing so far."""

    @abstractmethod
    def _worked_ns(self, thread: Counters) -> int | None:
        """The thread's processor time since the last look; None where nobody knows."""

    @abstractmethod
    def _layout(self, event_set: int) -> Layout:
        """What a thread's reads give while that set counts."""

    @abstractmethod
    def _descriptors(self, thread: Counters, event_set: int) -> Sequence[int]:
        """What is read of a thread while that set counts, one descriptor for each size of the layout."""

    # --- a counter's

    def begin_iteration(self, event_set: int) -> None:
        """Looks for new and ended threads, sees which were active, and switches to the set."""
        if self._thread_set is None:
            raise RuntimeError(f"{type(self).__name__}.start comes first")
        self._look_at_activity(self._thread_set)
        self._switch(self._thread_set, self._thread_set.rescan(), event_set)
        self._thread_set.require_main_thread()
        self._set = event_set
        self._begin_interval(self._thread_set)

    def enter_reader(self) -> Callable[[], None]:
        """Reads every thread that was active in the last iteration, the main thread last."""
        return self._readings.reader(ENTER)

    def leave_reader(self) -> Callable[[], None]:
        """Reads the main thread and every other one that was active in the last iteration."""
        return self._readings.reader(LEAVE)

    def gap_reader(self) -> Callable[[], None]:
        """Reads the main thread; the active ones hold their last values."""
        return self._readings.reader(GAP)

    def full_reader(self) -> Callable[[], None]:
        """Reads every thread, idle ones included: for the edges of iterations and stages, where nothing may be lost."""
        return self._readings.reader(FULL)

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        """The rows of the spans, without ``pass``: a row for each event and each thread read at both edges."""
        import polars as pl

        parts, cut, negative = [], 0, 0
        for begin in range(0, max(len(spans), 1), AT_ONCE):
            columns, crossing = self._readings.difference(spans[begin : begin + AT_ONCE])
            parts.append(counts_table(columns, self._event_names()))
            cut, negative = cut + crossing, negative + columns.negative
        if cut:
            text = f"{cut} spans reach over the end of their iteration and were not counted"
            self._notes.append(Note(NoteKind.INCOMPLETE, text))
        if negative:
            text = f"{negative} counts were left out: their counters seemed to run backwards"
            self._notes.append(Note(NoteKind.INCOMPLETE, text))
        return pl.concat(parts)

    # --- within

    def _open(self, thread_set: ThreadSet[Counters]) -> None:
        """Counts the first set on every thread that exists. Raises ``HwprofError`` where the main thread cannot be
        counted."""
        new = thread_set.rescan()
        for thread in new:
            since_creation_ns = cpu_time_ns(thread.tid)
            thread.active = since_creation_ns is None or since_creation_ns >= ACTIVE_NS
        self._switch(thread_set, new, self._set)
        thread_set.require_main_thread()
        self._thread_set = thread_set

    def _begin_interval(self, thread_set: ThreadSet[Counters]) -> None:
        """Threads in reading order: main, active, idle."""
        main, *others = thread_set.threads
        ordered = [main, *sorted(others, key=lambda thread: not thread.active)]
        layout = self._layout(self._set)
        self._readings.begin_interval(
            events=layout.events,
            fds=[fd for thread in ordered for fd in self._descriptors(thread, self._set)],
            tids=[thread.tid for thread in ordered],
            active=1 + sum(thread.active for thread in others),
            sizes=layout.sizes,
            turns=layout.turns,
            every_core=layout.every_core,
        )

    def _look_at_activity(self, thread_set: ThreadSet[Counters]) -> None:
        """Which threads worked since the last look; all whose time nobody knows."""
        edges_were_read = self._readings.edges > self._edges_seen
        self._edges_seen = self._readings.edges
        for thread in thread_set.threads:
            worked_ns = self._worked_ns(thread)
            if edges_were_read:
                thread.active = worked_ns is None or worked_ns >= ACTIVE_NS
