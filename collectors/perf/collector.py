"""The perf collector: hardware and software counters of every thread, read where layers begin and end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from collectors.perf.notes import plan_detail, plan_notes
from collectors.perf.plan import Plan, make_plan
from collectors.perf.threads import ThreadGroups, make_thread_set
from collectors.perf.totals import Account
from collectors.shared.child_processes import Children
from collectors.shared.counting import group_reads_library
from collectors.shared.counting.collector import CountingCollector, Layout
from collectors.shared.counting.notes import refused_threads
from collectors.shared.counting.tables import threads_table
from collectors.shared.counting.threads import ThreadSet
from collectors.shared.event_opening import KERNEL, NotAllowedError
from hwprof.collector.contract import Availability, Collected, Note, NoteKind, PassContext
from hwprof.errors import HwprofError
from hwprof.hardware import permission
from hwprof.hardware.countable import Selection
from hwprof.hardware.machine import describe
from hwprof.hardware.selection import select
from hwprof.unavailable import Unavailable


class PerfCollector(CountingCollector[ThreadGroups]):
    """Counts events of every thread of the worker with perf_event_open(2).

    Options: ``events`` (groups, metrics, events, raw codes; None: the defaults), ``kernel`` (whether hardware events
    count kernel code; None: where it is allowed), ``counters_held_by`` (the collector that has
    counters of the worker's threads already).
    """

    def __init__(self) -> None:
        super().__init__()
        self._selection: Selection | None = None
        self._plan_made: Plan | None = None
        self._account: Account | None = None
        self._children: Children | None = None
        self._cpu_ns = 0  # of the process, when counting began

    # --- Collector

    def availability(self) -> Availability:
        """Whether anything can be counted; notes and ``detail`` list which events cannot, why, and what would help."""
        try:
            plan = self._plan()
        except NotAllowedError as error:
            why = permission.why_not_allowed(error)
            return Availability(why, tools=(KERNEL,))
        detail = plan_detail(plan)
        lacks = None if detail.hardware else "hardware events"
        nothing = None if plan.sets else Unavailable("none of the events can be counted here")
        return Availability(nothing, detail, tuple(plan_notes(plan)), lacks, (KERNEL,))

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
        self._account = Account(plan)
        thread_set = make_thread_set(plan, context.main_tid)
        self._open(thread_set)
        self._cpu_ns = time.process_time_ns()
        self._begin_interval(thread_set)
        self._children = Children()  # the compiler that the first reading of edges may start is none of the workload's

    def stop(self) -> Collected:
        """Closes the counters. ``counts`` still works afterwards."""
        thread_set, context, account, selection = self._thread_set, self._context, self._account, self._selection
        if thread_set is None or context is None or account is None or selection is None:
            return Collected()
        plan = self._plan()
        self._look_at_activity(thread_set)
        cpu_ns = time.process_time_ns() - self._cpu_ns
        thread_set.close()
        self._thread_set = None
        self._notes += plan_notes(plan) + account.notes() + refused_threads(thread_set.refused)
        self._notes += self._children.worked().notes(cpu_ns, "counted") if self._children is not None else []
        detail = plan_detail(plan)
        detail.threads, detail.edges = len(thread_set.all), self._readings.edges
        detail.process_cpu_ns, detail.counted_cpu_ns = cpu_ns, account.counted_ns
        tools, slower = [KERNEL], self._readings.slower
        if slower is None:
            tools.append(group_reads_library.tool())
        else:
            detail.edge_reader = f"python ({slower})"
            text = f"counters are read by Python, not by compiled code, which costs more: {slower}"
            self._notes.append(Note(NoteKind.OVERHEAD, text, remedy=slower.remedy))
        return Collected(
            tables={"threads": threads_table(thread_set.all, context)},
            notes=self._notes,
            detail=detail,
            events=[event.info() for event in plan.events()],
            metrics=list(selection.metrics),
            tools=tools,
        )

    # --- a counter's

    def event_sets(self) -> Sequence[Sequence[str]]:
        """The event names of each set."""
        return [event_set.names for event_set in self._plan().sets]

    def _event_names(self) -> Sequence[str]:
        """Every counted event once."""
        return [event.name for event in self._plan().events()]

    # --- within

    def _plan(self) -> Plan:
        if self._plan_made is None:
            machine = describe()
            self._selection = select(self._options.get("events"), machine)
            kernel, held_by = self._options.get("kernel"), self._options.get("counters_held_by")
            self._plan_made = make_plan(self._selection, machine, kernel=kernel, held_by=held_by)
        return self._plan_made

    def _switch(self, thread_set: ThreadSet[ThreadGroups], new: Sequence[ThreadGroups], event_set: int) -> None:
        if event_set != self._set:
            for thread in thread_set.threads:
                if thread not in new:
                    thread.disable(self._set)
                    thread.enable(event_set)
        for thread in new:
            thread.enable(event_set)

    def _worked_ns(self, thread: ThreadGroups) -> int | None:
        """Time enabled only passes while the thread is on a processor."""
        assert self._account is not None
        return self._account.add(thread, self._set)

    def _layout(self, event_set: int) -> Layout:
        plan, names = self._plan(), self._event_names()
        counted = plan.sets[event_set]
        return Layout(
            events=[names.index(name) for name in counted.names],
            sizes=[len(part.events) for part in counted.parts],
            turns=plan.turns(counted),
            every_core=plan.on_every_core(counted),
        )

    def _descriptors(self, thread: ThreadGroups, event_set: int) -> Sequence[int]:
        return thread.leaders[event_set]
