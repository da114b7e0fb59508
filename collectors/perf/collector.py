"""The perf collector: hardware and software counters of every thread, read where layers begin and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from collectors.perf import permission
from collectors.perf.groups import Roster, cpu_time_ns, thread_name
from collectors.perf.plan import Dropped, NotAllowedError, Plan, make_plan
from collectors.perf.readings import ENTER, FULL, GAP, LEAVE, CountColumns, Readings
from hwprof.errors import HwprofError
from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import Event, catalogue
from hwprof.hardware.machine import describe
from hwprof.session.collector import Availability, Collected, CountedSpan, PassContext, Place

if TYPE_CHECKING:  # imported when counting is over: it brings threads of its own
    import polars as pl

ACTIVE_NS = 50_000
"""A thread with less processor time than this in the last iteration is idle: not read at every edge."""

UNCOUNTED_SHARE = 0.02
"""Processor time outside of all counters that is worth a note."""


class PerfCollector:
    """Counts events of every thread of the worker with perf_event_open(2).

    Options: ``events`` (names; None: the catalogue's defaults), ``kernel`` (whether hardware events count kernel code;
    None: where it is allowed).
    """

    name = "perf"
    summary = "hardware and software counters of every thread, per layer"
    place = Place.INSIDE
    wants_idle = False
    passes = frozenset({"measure", "trace"})

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}
        self._plan_made: Plan | None = None
        self._context: PassContext | None = None
        self._roster: Roster | None = None
        self._readings = Readings()
        self._set = 0
        self._edges_seen = 0  # at the last look at the threads' activity
        self._times_ns: list[list[int]] = []  # per set: time enabled and time running, over all threads
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

    def start(self, context: PassContext) -> None:
        """Opens the counters of every thread that exists; called on the main thread, after warm-up."""
        self._context = context
        if context.options != self._options:
            self._options, self._plan_made = dict(context.options), None
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
            perf_event.enable_group(thread.leaders[self._set])
        if not any(thread.tid == context.main_tid for thread in self._roster.threads):
            reason = self._roster.refused.get(context.main_tid, "it is not a thread of this process")
            self._roster.close()
            raise HwprofError(f"cannot count the main thread: {reason}", "raise the limit: ulimit -n 65536")
        self._cpu_ns = time.process_time_ns()
        self._begin_stretch()

    def stop(self) -> Collected:
        """Closes the counters. ``counts`` still works afterwards."""
        roster, context, plan = self._roster, self._context, self._plan_made
        if roster is None or context is None or plan is None:
            return Collected()
        self._look_at_activity()
        cpu_ns = time.process_time_ns() - self._cpu_ns
        for thread in roster.threads:
            thread.name = thread_name(thread.tid) or thread.name
        roster.close()
        self._roster = None
        machine = describe()
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
            events=[event.info(machine) for event in plan.events()],
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
                    perf_event.disable_group(thread.leaders[self._set])
                    perf_event.enable_group(thread.leaders[event_set])
        for thread in new:
            perf_event.enable_group(thread.leaders[event_set])
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
        return columns

    # --- within

    def _plan(self) -> Plan:
        if self._plan_made is None:
            names = self._options.get("events")
            events: Sequence[Event] = catalogue().defaults() if names is None else catalogue().select(names)
            self._plan_made = make_plan(events, kernel=self._options.get("kernel"))
        return self._plan_made

    def _started(self) -> Roster:
        if self._roster is None:
            raise RuntimeError("PerfCollector.start comes first")
        return self._roster

    def _begin_stretch(self) -> None:
        """Threads in reading order: main, active, idle."""
        roster, plan = self._started(), self._plan()
        main, *others = roster.threads
        ordered = [main, *sorted(others, key=lambda thread: not thread.active)]
        names = [event.name for event in plan.events()]
        self._readings.begin_stretch(
            events=tuple(names.index(name) for name in plan.sets[self._set].names),
            fds=[thread.leaders[self._set] for thread in ordered],
            tids=[thread.tid for thread in ordered],
            active=1 + sum(thread.active for thread in others),
        )

    def _look_at_activity(self) -> None:
        """Time enabled only passes while a thread is on a processor: it tells which threads were active since the last
        look, how much of the process's time was counted, and, with time running, whether the kernel multiplexed."""
        events = len(self._plan().sets[self._set].events)
        edges_were_read = self._readings.edges > self._edges_seen
        self._edges_seen = self._readings.edges
        for thread in self._started().threads:
            enabled_ns, running_ns, _ = perf_event.read_group(thread.leaders[self._set], events)
            seen = thread.times_ns[self._set]
            if edges_were_read:
                thread.active = enabled_ns - seen[0] >= ACTIVE_NS
            self._times_ns[self._set][0] += enabled_ns - seen[0]
            self._times_ns[self._set][1] += running_ns - seen[1]
            thread.times_ns[self._set] = (enabled_ns, running_ns)

    def _run_notes(self, roster: Roster, cpu_ns: int, counted_ns: int) -> list[str]:
        notes = []
        for number, (enabled_ns, running_ns) in enumerate(self._times_ns):
            if running_ns < 0.99 * enabled_ns:
                names = ", ".join(self._plan().sets[number].names)
                notes.append(
                    f"the kernel multiplexed: {names} were counted {running_ns / enabled_ns:.0%} of the time"
                    " (another program holds hardware counters, or the NMI watchdog: sudo sysctl kernel.nmi_watchdog=0)"
                )
        if counted_ns < (1 - UNCOUNTED_SHARE) * cpu_ns:
            notes.append(
                f"{(cpu_ns - counted_ns) / cpu_ns:.0%} of the process's processor time was not counted:"
                " threads that began during an iteration are counted from the next one on"
            )
        if roster.refused:
            reasons = ", ".join(sorted(set(roster.refused.values())))
            notes.append(f"{len(roster.refused)} threads could not be counted: {reasons} (ulimit -n 65536 gives room)")
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


def plan_notes(plan: Plan) -> list[str]:
    """What the user should know about what is counted and what is not."""
    notes = list(plan.notes)
    hardware = any(event.kind == "hardware" for event in plan.events())
    if hardware and (split := permission.why_not_on_every_core()) is not None:
        notes.append(f"{split.reason} ({split.remedy})")
    if not plan.kernel:
        why = "as asked" if plan.kernel_allowed else f"kernel.perf_event_paranoid is {perf_event.paranoid_level()}"
        remedy = "" if plan.kernel_allowed else f"; to count the kernel's part too: {permission.LOWER_PARANOID}"
        notes.append(f"hardware events count user code only ({why}{remedy})")
    dropped: dict[Dropped, list[str]] = {}
    for name, why_not in _dropped(plan).items():
        dropped.setdefault(why_not, []).append(name)
    for why_not, names in dropped.items():
        remedy = f" ({why_not.remedy})" if why_not.remedy else ""
        notes.append(f"not counted: {', '.join(names)}: {why_not.reason}{remedy}")
    return notes


def plan_detail(plan: Plan) -> dict[str, Any]:
    """The plan for the manifest: the usable events by kind, and the others with reason and remedy."""
    events = plan.events()
    return {
        "hardware": [event.name for event in events if event.kind == "hardware"],
        "software": [event.name for event in events if event.kind == "software"],
        "kernel": plan.kernel,
        "unavailable_events": {
            name: {"reason": why_not.reason, "remedy": why_not.remedy} for name, why_not in _dropped(plan).items()
        },
    }


def _dropped(plan: Plan) -> dict[str, Dropped]:
    """Why events are not counted; where no hardware event works at all, the one reason behind all of them."""
    if any(event.kind == "hardware" for event in plan.events()) or perf_event.core_pmu_counts():
        return plan.dropped
    software = {event.name for event in catalogue().events if event.kind == "software"}
    return {
        name: why_not if name in software else permission.why_no_hardware() for name, why_not in plan.dropped.items()
    }
