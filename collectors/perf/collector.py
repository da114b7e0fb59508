"""The perf collector: hardware and software counters of every thread, read where layers begin and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from collectors.perf import permission
from collectors.perf.children import Children
from collectors.perf.groups import Roster, ThreadCounters, cpu_time_ns, thread_name
from collectors.perf.opening import NotAllowedError
from collectors.perf.plan import Plan, make_plan
from collectors.perf.readings import ENTER, FULL, FULLY_RUNNING, GAP, LEAVE, CountColumns, Readings
from collectors.perf.telling import plan_detail, plan_notes
from hwprof.errors import HwprofError
from hwprof.hardware import perf_event
from hwprof.hardware.countable import Selection
from hwprof.hardware.machine import describe
from hwprof.hardware.packing import EventSet
from hwprof.hardware.selection import select
from hwprof.session.collector import Availability, Collected, CountedSpan, PassContext, Place

if TYPE_CHECKING:  # imported when counting is over: it brings threads of its own
    import polars as pl

ACTIVE_NS = 50_000
"""A thread with less processor time than this in the last iteration is idle: not read at every edge."""

UNCOUNTED_SHARE = 0.02
"""Processor time outside of all counters that is worth a note."""

ZERO_NS = 1_000_000
"""An event that counts nothing for this long is worth a note."""


class PerfCollector:
    """Counts events of every thread of the worker with perf_event_open(2).

    Options: ``events`` (groups, metrics, events, raw codes; None: the defaults), ``kernel`` (whether hardware events
    count kernel code; None: where it is allowed).
    """

    name = "perf"
    summary = "hardware and software counters of every thread, per layer"
    place = Place.INSIDE
    wants_idle = False
    passes = frozenset({"measure", "trace"})

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}
        self._selection: Selection | None = None
        self._plan_made: Plan | None = None
        self._context: PassContext | None = None
        self._roster: Roster | None = None
        self._children: Children | None = None
        self._readings = Readings()
        self._set = 0
        self._edges_seen = 0  # at the last look at the threads' activity
        self._times_ns: list[list[int]] = []  # per set: time enabled and time running, over all threads
        self._totals: dict[str, list[int]] = {}  # per event: its counts and the time that it ran, over all threads
        self._notes: list[str] = []  # those of ``Collected``, which ``counts`` may add to afterwards
        self._cpu_ns = 0  # of the process, when counting began

    # --- Collector

    def availability(self) -> Availability:
        """Whether anything can be counted; notes and ``detail`` tell which events cannot, why, and what would help."""
        try:
            plan = self._plan()
        except NotAllowedError as error:
            why = permission.why_not_allowed(error)
            return Availability(ok=False, reason=why.reason, remedy=why.remedy)
        return Availability(ok=bool(plan.sets), detail=plan_detail(plan), notes=tuple(plan_notes(plan)))

    def check_options(self, options: dict[str, Any]) -> None:
        """Raises ``UsageError`` for events that nobody knows."""
        select(options.get("events"), describe())

    def start(self, context: PassContext) -> None:
        """Opens the counters of every thread that exists; called on the main thread, after warm-up."""
        self._context = context
        if context.options != self._options:
            self._options, self._selection, self._plan_made = dict(context.options), None, None
        try:
            plan = self._plan()
        except NotAllowedError as error:
            why = permission.why_not_allowed(error)
            raise HwprofError(why.reason, why.remedy) from error
        if not plan.sets:
            raise HwprofError("none of the events can be counted here", "hwprof doctor shows why")
        self._times_ns = [[0, 0] for _ in plan.sets]
        self._roster = Roster(plan, context.main_tid)
        for thread in self._roster.rescan():
            before_ns = cpu_time_ns(thread.tid)
            thread.active = before_ns is None or before_ns >= ACTIVE_NS
            thread.enable(self._set)
        if not any(thread.tid == context.main_tid for thread in self._roster.threads):
            reason = self._roster.refused.get(context.main_tid, "it is not a thread of this process")
            self._roster.close()
            raise HwprofError(f"cannot count the main thread: {reason}", "raise the limit: ulimit -n 65536")
        self._children = Children()
        self._cpu_ns = time.process_time_ns()
        self._begin_stretch()

    def stop(self) -> Collected:
        """Closes the counters. ``counts`` still works afterwards."""
        roster, context, plan, selection = self._roster, self._context, self._plan_made, self._selection
        if roster is None or context is None or plan is None or selection is None:
            return Collected()
        self._look_at_activity()
        cpu_ns = time.process_time_ns() - self._cpu_ns
        for thread in roster.threads:
            thread.name = thread_name(thread.tid) or thread.name
        roster.close()
        self._roster = None
        counted_ns = sum(enabled_ns for enabled_ns, _ in self._times_ns)
        self._notes += plan_notes(plan) + self._run_notes(roster, cpu_ns, counted_ns)
        return Collected(
            tables={"threads": self._threads_table(roster, context)},
            notes=self._notes,
            detail=plan_detail(plan)
            | {
                "threads": len(roster.all),
                "edges": self._readings.edges,
                "process_cpu_ns": cpu_ns,
                "counted_cpu_ns": counted_ns,
            },
            events=[event.info() for event in plan.events()],
            metrics=list(selection.metrics),
        )

    # --- EdgeCounter

    def event_sets(self) -> Sequence[Sequence[str]]:
        """The event names of each set."""
        return [event_set.names for event_set in self._plan().sets]

    def begin_iteration(self, event_set: int) -> None:
        """Looks for new and ended threads, sees which were active, and switches to the set."""
        roster = self._started()
        self._look_at_activity()
        new = roster.rescan()
        if event_set != self._set:
            for thread in roster.threads:
                if thread not in new:
                    thread.disable(self._set)
                    thread.enable(event_set)
        for thread in new:
            thread.enable(event_set)
        self._set = event_set
        self._begin_stretch()

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

        columns = self.count_columns(spans)
        names = pl.Series("event", [event.name for event in self._plan().events()], dtype=pl.String)
        return pl.DataFrame(
            {
                "iteration": pl.Series(columns.iteration).cast(pl.Int32),
                "span": columns.span,
                "tid": pl.Series(columns.tid).cast(pl.Int32),
                "event": names.gather(pl.Series(columns.event)),
                "value": columns.value,
                "enabled_ns": columns.enabled_ns,
                "running_ns": columns.running_ns,
            }
        ).with_columns(provenance=pl.lit("measured"))

    def count_columns(self, spans: Sequence[CountedSpan]) -> CountColumns:
        """``counts`` as numpy arrays."""
        columns, cut = self._readings.difference(spans)
        if cut:
            self._notes.append(f"{cut} spans reach over the end of their iteration and were not counted")
        if columns.negative:
            self._notes.append(f"{columns.negative} counts were left out: their counters seemed to run backwards")
        return columns

    # --- within

    def _plan(self) -> Plan:
        if self._plan_made is None:
            machine = describe()
            self._selection = select(self._options.get("events"), machine)
            self._plan_made = make_plan(self._selection, machine, kernel=self._options.get("kernel"))
        return self._plan_made

    def _started(self) -> Roster:
        if self._roster is None:
            raise RuntimeError("PerfCollector.start comes first")
        return self._roster

    def _begin_stretch(self) -> None:
        """Threads in reading order: main, active, idle."""
        roster, plan = self._started(), self._plan()
        event_set = plan.sets[self._set]
        main, *others = roster.threads
        ordered = [main, *sorted(others, key=lambda thread: not thread.active)]
        names = [event.name for event in plan.events()]
        self._readings.begin_stretch(
            events=[names.index(name) for name in event_set.names],
            fds=[leader for thread in ordered for leader in thread.leaders[self._set]],
            tids=[thread.tid for thread in ordered],
            active=1 + sum(thread.active for thread in others),
            sizes=[len(part.events) for part in event_set.parts],
            turns=plan.turns(event_set),
            every_core=plan.on_every_core(event_set),
        )

    def _look_at_activity(self) -> None:
        """Time enabled only passes while a thread is on a processor: it tells which threads were active since the last
        look, how much of the process's time was counted, and, with time running, whether the kernel multiplexed."""
        event_set = self._plan().sets[self._set]
        edges_were_read = self._readings.edges > self._edges_seen
        self._edges_seen = self._readings.edges
        for thread in self._started().threads:
            enabled_ns = self._look_at(thread, event_set)
            if edges_were_read:
                thread.active = enabled_ns >= ACTIVE_NS

    def _look_at(self, thread: ThreadCounters, event_set: EventSet) -> int:
        """Adds what the thread has counted since the last look; returns the time that its counters were enabled."""
        seen, ran = thread.seen[self._set], []
        first_ns = seen[0][0]
        for number, part in enumerate(event_set.parts):
            before, now = seen[number], perf_event.read_group(thread.leaders[self._set][number], len(part.events))
            if now[0] == before[0]:
                ran.append(0)
                continue
            ran.append(now[1] - before[1])
            for event, earlier, later in zip(part.events, before[2], now[2], strict=True):
                total = self._totals.setdefault(event.name, [0, 0])
                total[0] += later - earlier
                total[1] += ran[-1]
            seen[number] = now
        enabled_ns = seen[0][0] - first_ns
        turns = self._plan().turns(event_set)
        self._times_ns[self._set][0] += enabled_ns
        self._times_ns[self._set][1] += sum(ran[number] for number in turns) if turns else ran[0]
        return enabled_ns

    def _run_notes(self, roster: Roster, cpu_ns: int, counted_ns: int) -> list[str]:
        notes = self._multiplexing_notes()
        zero = [
            event.name
            for event in self._plan().events()
            if event.kind == "hardware"
            and (total := self._totals.get(event.name))
            and total[1] >= ZERO_NS > total[0] == 0
        ]
        if zero:
            notes.append(
                f"counted 0 throughout: {', '.join(zero)}: happens never here, or this processor (or its hypervisor)"
                " does not implement it"
            )
        if counted_ns < (1 - UNCOUNTED_SHARE) * cpu_ns:
            notes.append(
                f"{(cpu_ns - counted_ns) / cpu_ns:.0%} of the process's processor time was not counted:"
                " threads that began during an iteration are counted from the next one on"
            )
        if roster.refused:
            reasons = ", ".join(sorted(set(roster.refused.values())))
            notes.append(f"{len(roster.refused)} threads could not be counted: {reasons} (ulimit -n 65536 gives room)")
        children_ns, children = self._children.worked() if self._children else (0, [])
        if children_ns > UNCOUNTED_SHARE * cpu_ns:
            notes.append(
                f"child processes worked for {children_ns / 1e9:.2f} s, which is not counted:"
                f" {', '.join(children) or 'they have ended'} (data loaders: num_workers=0)"
            )
        return notes

    def _multiplexing_notes(self) -> list[str]:
        notes = []
        for event_set, (enabled_ns, running_ns) in zip(self._plan().sets, self._times_ns, strict=True):
            if running_ns >= FULLY_RUNNING * enabled_ns:
                continue
            names = ", ".join(event.name for event in event_set.events if event.kind == "hardware")
            if self._plan().on_every_core(event_set):
                holder = permission.with_remedy(permission.who_holds_counters())
                notes.append(
                    f"the kernel multiplexed: {names} were counted {running_ns / enabled_ns:.0%} of the time: {holder}"
                )
            else:
                kinds = ", ".join(str(part.pmu) for part in event_set.parts if part.pmu is not None)
                notes.append(f"{names}: only on {kinds}, where {running_ns / enabled_ns:.0%} of the time was spent")
        return notes

    def _threads_table(self, roster: Roster, context: PassContext) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "pass": context.pass_name,
                    "pid": context.pid,
                    "tid": thread.tid,
                    "name": thread.name,
                    "role": "main" if thread.tid == context.main_tid else "worker",
                }
                for thread in roster.all
            ]
        ).unique(subset="tid", keep="last", maintain_order=True)
