"""The PAPI collector: presets and native events of every thread, read where layers begin and end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from collectors.papi import library
from collectors.papi.library import Papi, PapiError
from collectors.papi.plan import TASK_CLOCK, Plan, make_plan
from collectors.papi.selection import select
from collectors.papi.threads import Roster
from collectors.perf import permission
from collectors.perf.collector import ACTIVE_NS
from collectors.perf.groups import cpu_time_ns, thread_name
from collectors.perf.readings import ENTER, FULL, GAP, LEAVE, Readings
from collectors.perf.sweep import PythonSweep
from hwprof.errors import HwprofError
from hwprof.hardware import perf_event
from hwprof.hardware.countable import Dropped
from hwprof.hardware.machine import describe
from hwprof.hardware.metrics import operands
from hwprof.run.manifest import MetricDefinition
from hwprof.session.collector import Availability, Collected, CountedSpan, PassContext, Place

if TYPE_CHECKING:  # imported when counting is over: it brings threads of its own
    import polars as pl


class PapiCollector:
    """Counts events of every thread of the worker with PAPI.

    Options: ``events`` (groups, metrics, PAPI's names of presets and native events; None: the default metrics),
    ``kernel`` (whether kernel code is counted; None: where it is allowed), ``alone`` (perf does not count beside it:
    software events carry the kernel's names, which the report's CPU times are made of).
    """

    name = "papi"
    summary = "PAPI's presets and native events of every thread, per layer"
    place = Place.INSIDE
    wants_idle = False
    passes = frozenset({"measure", "trace"})

    def __init__(self, load: Callable[[], Papi] = library.load) -> None:
        self._load = load
        self._options: dict[str, Any] = {}
        self._plan_made: Plan | None = None
        self._context: PassContext | None = None
        self._roster: Roster | None = None
        self._readings = Readings()
        self._set = 0
        self._edges_seen = 0  # at the last look at the threads' activity
        self._notes: list[str] = []  # those of ``Collected``, which ``counts`` may add to afterwards

    # --- Collector

    def availability(self) -> Availability:
        """Whether PAPI counts anything; notes and ``detail`` tell which events it cannot, why, and what would help."""
        try:
            plan = self._plan(threading.get_native_id())
        except HwprofError as error:
            if error.exit_code != HwprofError.exit_code:  # the user's mistake, not the machine's
                raise
            return Availability(ok=False, reason=error.message, remedy=error.remedy)
        return Availability(ok=bool(plan.sets), detail=plan_detail(plan), notes=tuple(plan_notes(plan)))

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
        self._readings = Readings(PythonSweep(plan.papi.reader(max(len(event_set) for event_set in plan.sets))))
        self._roster = Roster(plan, context.main_tid)
        for thread in self._roster.rescan():
            thread.cpu_ns = cpu_time_ns(thread.tid)
            thread.active = thread.cpu_ns is None or thread.cpu_ns >= ACTIVE_NS
        self._roster.start(self._set)
        self._begin_stretch()

    def stop(self) -> Collected:
        """Closes the event sets. ``counts`` still works afterwards."""
        roster, context, plan = self._roster, self._context, self._plan_made
        if roster is None or context is None or plan is None:
            return Collected()
        for thread in roster.threads:
            thread.name = thread_name(thread.tid) or thread.name
        roster.close()
        self._roster = None
        machine = describe()
        self._notes += plan_notes(plan) + _refused_notes(roster, plan)
        return Collected(
            tables={"threads": _threads_table(roster, context)},
            notes=self._notes,
            detail=plan_detail(plan) | {"threads": len(roster.all), "edges": self._readings.edges},
            events=[
                msgspec.structs.replace(event.info(machine), name=shown)
                for event, shown in zip(plan.events.values(), self._shown(plan.events), strict=True)
            ],
            metrics=[self._renamed(metric) for metric in plan.metrics],
        )

    # --- EdgeCounter

    def event_sets(self) -> Sequence[Sequence[str]]:
        """The event names of each set."""
        return [self._shown(names) for names in self._started().sets]

    def begin_iteration(self, event_set: int) -> None:
        """Looks for new and ended threads, sees which were active, and switches to the set."""
        roster = self._roster
        if roster is None:
            raise RuntimeError("PapiCollector.start comes first")
        self._look_at_activity(roster)
        new = roster.rescan()
        for thread in new:
            thread.cpu_ns = cpu_time_ns(thread.tid)
        roster.start(event_set)
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
        """The rows of the spans, without ``pass``: a row for each event and each thread read at both edges.

        PAPI tells no times. It pins its sets, so they count whenever their thread runs: enabled and running time are
        the task clock's, which is in every set.
        """
        import polars as pl

        plan = self._started()
        columns, cut = self._readings.difference(spans)
        if cut:
            self._notes.append(f"{cut} spans reach over the end of their iteration and were not counted")
        names = pl.Series("event", list(plan.events), dtype=pl.String)
        time_ns = pl.col("value").filter(pl.col("event") == TASK_CLOCK).first().over("span", "tid")
        counts = pl.DataFrame(
            {
                "iteration": pl.Series(columns.iteration).cast(pl.Int32),
                "span": columns.span,
                "tid": pl.Series(columns.tid).cast(pl.Int32),
                "event": names.gather(pl.Series(columns.event)),
                "value": columns.value,
            }
        ).with_columns(enabled_ns=time_ns, running_ns=time_ns, provenance=pl.lit("measured"))
        self._notes += _silent_notes(counts, plan)
        shown = dict(zip(plan.events, self._shown(plan.events), strict=True))
        return counts.with_columns(pl.col("event").replace(shown))

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

    def _begin_stretch(self) -> None:
        """Threads in reading order: main, active, idle."""
        roster, plan = self._roster, self._started()
        assert roster is not None
        names = list(plan.events)
        main, *others = roster.threads
        ordered = [main, *sorted(others, key=lambda thread: not thread.active)]
        self._readings.begin_stretch(
            events=tuple(names.index(name) for name in plan.sets[self._set]),
            fds=[thread.sets[self._set] for thread in ordered],
            tids=[thread.tid for thread in ordered],
            active=1 + sum(thread.active for thread in others),
        )

    def _look_at_activity(self, roster: Roster) -> None:
        """Which threads had processor time since the last look. A kernel that keeps none leaves all of them active."""
        edges_were_read = self._readings.edges > self._edges_seen
        self._edges_seen = self._readings.edges
        for thread in roster.threads:
            now_ns = cpu_time_ns(thread.tid)
            if edges_were_read:
                thread.active = now_ns is None or now_ns - (thread.cpu_ns or 0) >= ACTIVE_NS
            thread.cpu_ns = now_ns


def plan_notes(plan: Plan) -> list[str]:
    """What the user should know about what is counted and what is not."""
    notes = []
    if not plan.attaches:
        notes.append(
            "PAPI counts the main thread only: to attach to another one it first opens a hardware event, also for"
            " software events (perf counts every thread)"
        )
    if not plan.kernel:
        why_user = "as asked" if plan.kernel_allowed else f"kernel.perf_event_paranoid is {perf_event.paranoid_level()}"
        remedy = "" if plan.kernel_allowed else f"; to count the kernel's part too: {permission.LOWER_PARANOID}"
        notes.append(f"events count user code only ({why_user}{remedy})")
    dropped: dict[Dropped, list[str]] = {}
    for name, why_not in plan.dropped.items():
        dropped.setdefault(why_not, []).append(name)
    for why_not, names in dropped.items():
        remedy = f" ({why_not.remedy})" if why_not.remedy else ""
        notes.append(f"not counted: {', '.join(names)}: {why_not.reason}{remedy}")
    if len(plan.sets) > 1:
        notes.append(
            f"PAPI finds no counters for all events at once: they are counted in {len(plan.sets)} sets in turn"
        )
    return notes


def plan_detail(plan: Plan) -> dict[str, Any]:
    """The plan for the manifest: the usable events by kind, and the others with reason and remedy."""
    return {
        "library": plan.papi.path,
        "version": plan.papi.version,
        "hardware": plan.hardware,
        "software": [name for name in plan.events if name not in plan.hardware],
        "kernel": plan.kernel,
        "every_thread": plan.attaches,
        "unavailable_events": {
            name: {"reason": why_not.reason, "remedy": why_not.remedy} for name, why_not in plan.dropped.items()
        },
    }


def _why_nothing(papi: Papi, papis_reason: str) -> HwprofError:
    """The error where PAPI starts and cannot count by thread at all."""
    level = perf_event.paranoid_level()
    remedy = permission.LOWER_PARANOID if level is not None and level > 2 else library.NEWER
    return HwprofError(f"PAPI {papi.version} ({papi.path}) counts nothing here: {papis_reason}", remedy)


def _refused_notes(roster: Roster, plan: Plan) -> list[str]:
    """How many threads were not counted, and why, unless the plan's notes say so already."""
    if not roster.refused or not plan.attaches:
        return []
    reasons = ", ".join(sorted(set(roster.refused.values())))
    return [f"{len(roster.refused)} threads could not be counted: {reasons} (ulimit -n 65536 gives room)"]


def _silent_notes(counts: pl.DataFrame, plan: Plan) -> list[str]:
    """The hardware events that stayed 0 all the time."""
    import polars as pl

    totals = (
        counts.filter(pl.col("event").is_in(plan.hardware))
        .group_by("event", maintain_order=True)
        .agg(pl.col("value").sum(), pl.col("running_ns").sum())
    )
    silent = totals.filter((pl.col("value") == 0) & (pl.col("running_ns") > 0))["event"].to_list()
    if not silent:
        return []
    return [f"stayed 0 throughout: {', '.join(silent)}: it never happened, or this processor does not implement it"]


def _threads_table(roster: Roster, context: PassContext) -> pl.DataFrame:
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
