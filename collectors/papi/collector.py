"""The PAPI collector: presets and native events of every thread, read where layers begin and end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from collectors.papi import library
from collectors.papi.library import Papi, PapiError
from collectors.papi.notes import plan_detail, plan_notes
from collectors.papi.plan import TASK_CLOCK, Plan, make_plan
from collectors.papi.selection import select
from collectors.papi.threads import ThreadSets, make_thread_set
from collectors.shared.counting.collector import CountingCollector, Layout
from collectors.shared.counting.group_reads import PythonGroupReads
from collectors.shared.counting.notes import Total, refused_threads, silent_events
from collectors.shared.counting.readings import Readings
from collectors.shared.counting.tables import threads_table
from collectors.shared.counting.threads import ThreadSet
from hwprof.collector.contract import Availability, Collected, CountedSpan, PassContext, Tool
from hwprof.errors import HwprofError
from hwprof.hardware import perf_event, permission
from hwprof.hardware.machine import describe
from hwprof.hardware.metrics import operands
from hwprof.run.manifest import MetricDefinition
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:  # imported when counting is over: it brings threads of its own
    import polars as pl


class PapiCollector(CountingCollector[ThreadSets]):
    """Counts events of every thread of the worker with PAPI.

    Options: ``events`` (groups, metrics, PAPI's names of presets and native events; None: the default metrics),
    ``kernel`` (whether kernel code is counted; None: where it is allowed), ``alone`` (perf does not count beside it:
    software events carry the kernel's names, which the report's CPU times are made of).
    """

    def __init__(self, load: Callable[[], Papi] = library.load) -> None:
        super().__init__()
        self._load = load
        self._plan_made: Plan | None = None

    # --- Collector

    def availability(self) -> Availability:
        """Whether PAPI counts anything; notes and ``detail`` list which events it cannot, why, and what would help."""
        try:
            plan = self._plan(threading.get_native_id())
        except HwprofError as error:
            if error.exit_code != HwprofError.exit_code:  # the user's mistake, not the machine's
                raise
            return Availability.no(error.message, error.remedy)
        nothing = None if plan.sets else Unavailable("PAPI can count none of the events here")
        return Availability(nothing, plan_detail(plan), tuple(plan_notes(plan)), tools=(_tool(plan),))

    def check_options(self, options: dict[str, Any]) -> None:
        """Raises ``UsageError`` for events that nobody knows."""
        select(self._load(), options.get("events"))

    def start(self, context: PassContext) -> None:
        """Opens the event sets of every thread that exists; called on the main thread, after warm-up."""
        self._context = context
        if context.options != self._options:
            self._options, self._plan_made = dict(context.options), None
        plan = self._plan(context.main_tid)
        if not plan.sets:
            raise HwprofError("PAPI can count none of the events here", "hwprof doctor shows why")
        self._readings = Readings(PythonGroupReads(plan.papi.reader(max(len(event_set) for event_set in plan.sets))))
        thread_set = make_thread_set(plan, context.main_tid)
        self._open(thread_set)
        self._begin_interval(thread_set)

    def stop(self) -> Collected:
        """Closes the event sets. ``counts`` still works afterwards."""
        thread_set, context, plan = self._thread_set, self._context, self._plan_made
        if thread_set is None or context is None or plan is None:
            return Collected()
        thread_set.close()
        self._thread_set = None
        machine = describe()
        self._notes += plan_notes(plan) + (refused_threads(thread_set.refused) if plan.attaches else [])
        detail = plan_detail(plan)
        detail.threads, detail.edges = len(thread_set.all), self._readings.edges
        return Collected(
            tools=[_tool(plan)],
            tables={"threads": threads_table(thread_set.all, context)},
            notes=self._notes,
            detail=detail,
            events=[
                msgspec.structs.replace(event.info(machine), name=shown)
                for event, shown in zip(plan.events.values(), self._shown(plan.events), strict=True)
            ],
            metrics=[self._renamed(metric) for metric in plan.metrics],
        )

    # --- a counter's

    def event_sets(self) -> Sequence[Sequence[str]]:
        """The event names of each set."""
        return [self._shown(names) for names in self._started().sets]

    def _event_names(self) -> Sequence[str]:
        """Every counted event once."""
        return self._shown(self._started().events)

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        """The rows of the spans, without ``pass``: a row for each event and each thread read at both edges.

        PAPI reports no times. It pins its sets, so they count whenever their thread runs: enabled and running time are
        the task clock's, which is in every set.
        """
        import polars as pl

        (clock,) = self._shown([TASK_CLOCK])
        time_ns = pl.col("value").filter(pl.col("event") == clock).first().over("span", "tid")
        counts = super().counts(spans).with_columns(enabled_ns=time_ns, running_ns=time_ns)
        self._notes += silent_events(self._totals(counts))
        return counts

    # --- within

    def _shown(self, names: Iterable[str]) -> list[str]:
        """The events' names in tables: PAPI's, or the kernel's for its software events where PAPI counts alone."""
        if not self._options.get("alone"):
            return list(names)
        events = self._started().events
        return [(events[name].aliases or (name,))[0] if name in events else name for name in names]

    def _renamed(self, metric: MetricDefinition) -> MetricDefinition:
        formula = metric.formula
        for name in operands(formula):
            formula = formula.replace(f'"{name}"', f'"{self._shown([name])[0]}"')
        return msgspec.structs.replace(metric, formula=formula)

    def _plan(self, main_tid: int) -> Plan:
        if self._plan_made is None:
            papi = self._load()
            disabled = papi.why_disabled()
            if disabled is not None:
                raise _why_nothing(papi, disabled)
            options = self._options
            try:
                self._plan_made = make_plan(
                    papi, options.get("events"), kernel=options.get("kernel"), main_tid=main_tid
                )
            except PapiError as error:
                raise _why_nothing(papi, str(error)) from error
        return self._plan_made

    def _started(self) -> Plan:
        if self._plan_made is None:
            raise RuntimeError("PapiCollector.start comes first")
        return self._plan_made

    def _switch(self, thread_set: ThreadSet[ThreadSets], new: Sequence[ThreadSets], event_set: int) -> None:
        """A thread that PAPI cannot start is given up."""
        for thread in list(thread_set.threads):
            try:
                thread.start(event_set)
            except PapiError as error:
                thread_set.give_up(thread, str(error))

    def _worked_ns(self, thread: ThreadSets) -> int | None:
        return thread.worked_ns()

    def _layout(self, event_set: int) -> Layout:
        plan = self._started()
        names, counted = list(plan.events), plan.sets[event_set]
        return Layout(events=[names.index(name) for name in counted], sizes=[len(counted)])

    def _descriptors(self, thread: ThreadSets, event_set: int) -> Sequence[int]:
        return [thread.sets[event_set]]

    def _totals(self, counts: pl.DataFrame) -> dict[str, Total]:
        """What was counted of each event over all threads; spans lie in one another, the iteration's around them."""
        import polars as pl

        figures = pl.col("value", "running_ns")
        iterations = counts.group_by("event", "iteration", "tid", maintain_order=True).agg(figures.max())
        sums = iterations.group_by("event", maintain_order=True).agg(figures.sum()).select("event", figures)
        events = dict(zip(self._event_names(), self._started().events.values(), strict=True))
        return {
            event: Total(events[event], value=value, running_ns=running_ns) for event, value, running_ns in sums.rows()
        }


def _why_nothing(papi: Papi, papis_reason: str) -> HwprofError:
    """The error where PAPI starts and cannot count by thread at all."""
    level = perf_event.paranoid_level()
    remedy = permission.LOWER_PARANOID if level is not None and level > 2 else library.NEWER
    return HwprofError(f"PAPI {papi.version} ({papi.path}) counts nothing here: {papis_reason}", remedy)


def _tool(plan: Plan) -> Tool:
    return Tool(name="PAPI", version=plan.papi.version, path=plan.papi.path)
