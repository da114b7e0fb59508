"""Which PAPI events are counted, in which sets: what PAPI opens *and* counts here, tried out on the calling thread.

PAPI pins a set to its counters: it counts all the time that its thread runs, or PAPI says that it conflicts. Sets that
conflict are split; nothing is multiplexed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from collectors.papi.library import COMPONENT, ECNFLCT, ENOEVNT, ENOSUPP, EPERM, Papi, PapiError
from collectors.papi.selection import LIST_EVENTS, select
from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import Event
from hwprof.hardware.metrics import operands
from hwprof.hardware.permission import LOWER_PARANOID, why_no_hardware
from hwprof.run.manifest import MetricDefinition
from hwprof.unavailable import Unavailable

COMPANIONS: Final = ("PAPI_TOT_CYC", "PAPI_TOT_INS")
"""What is counted in every set where there is room."""

TASK_CLOCK: Final = "perf::TASK-CLOCK"
"""In every set: the time that the set counted, and, as no processor has it in a counter, what keeps PAPI before 7.1
from reading other threads' sets with ``rdpmc``, which gives it the calling processor's counters instead."""


@dataclass
class Plan:
    """What is counted. ``sets`` are names of events that are counted together, in the order of PAPI's values."""

    papi: Papi
    sets: list[tuple[str, ...]] = field(default_factory=list)
    events: dict[str, Event] = field(default_factory=dict)  # by name: those that are counted
    metrics: list[MetricDefinition] = field(default_factory=list)
    dropped: dict[str, Unavailable] = field(default_factory=dict)
    kernel: bool = False  # the sets count kernel code as well
    kernel_allowed: bool = False
    attaches: bool = False  # other threads than the calling one can be counted

    @property
    def hardware(self) -> list[str]:
        """The events that need a counter of the processor."""
        return [name for name, event in self.events.items() if event.kind == "hardware"]


def make_plan(papi: Papi, names: Iterable[str] | None, *, kernel: bool | None, main_tid: int) -> Plan:
    """The sets in which those of the events that work here are counted; called on the main thread.

    ``names``: groups, metrics, PAPI's presets and native events; None: the default metrics. ``kernel``: whether kernel
    code is counted; None: wherever it is allowed. Raises ``UsageError`` on a name that nobody knows, and ``PapiError``
    where PAPI cannot even count a thread's time.
    """
    selection = select(papi, names)
    plan = Plan(papi, metrics=selection.metrics, dropped=selection.dropped, kernel_allowed=_kernel_allowed(papi))
    plan.kernel = plan.kernel_allowed if kernel is None else kernel and plan.kernel_allowed
    papi.count_kernel(plan.kernel)
    plan.attaches = _attaches(papi, main_tid)
    usable = []
    for event in selection.events.values():
        why_not = _why_not(plan, event)
        if why_not is None:
            usable.append(event)
        else:
            plan.dropped[event.name] = why_not
    plan.sets = pack(papi, usable, [operands(metric.formula) for metric in selection.metrics])
    counted = {name for names in plan.sets for name in names}
    plan.events = {event.name: event for event in usable if event.name in counted}
    for event in usable:
        if event.name not in counted:
            plan.dropped[event.name] = Unavailable(
                f"{event.name} gets no hardware counter together with software events"
            )
    if not plan.hardware and not perf_event.core_pmu_counts():  # the one reason behind all of them
        hardware = [event.name for event in selection.events.values() if event.kind == "hardware"]
        plan.dropped |= dict.fromkeys(hardware, why_no_hardware())
    return plan


def _kernel_allowed(papi: Papi) -> bool:
    """Whether this user may count what the kernel does."""
    try:
        papi.count_kernel(True)
        try_out(papi, [TASK_CLOCK])
    except PapiError as error:
        if error.code not in (EPERM, ENOSUPP):
            raise
        papi.count_kernel(False)
        try_out(papi, [TASK_CLOCK])  # raises where not even that is allowed
        return False
    return True


def _attaches(papi: Papi, tid: int) -> bool:
    """Whether PAPI attaches sets to threads: it first opens a hardware event, even for a set of software ones."""
    try:
        papi.close_set(papi.open_set([TASK_CLOCK], tid))
    except PapiError:
        return False
    return True


def _why_not(plan: Plan, event: Event) -> Unavailable | None:
    """Why the event cannot be counted on its own; None if it can."""
    papi = plan.papi
    code = papi.code(event.name)
    if code is None:
        return Unavailable(f"PAPI {papi.version} does not know {event.name}", LIST_EVENTS)
    component = papi.component_of(code)
    if component != COMPONENT:
        return Unavailable(f"PAPI's component {component} counts {event.name} for the machine, not by thread")
    if event.kernel_only and not plan.kernel:
        if plan.kernel_allowed:
            return Unavailable(f"{event.name} happen in the kernel, which is left out as asked")
        level = perf_event.paranoid_level()
        return Unavailable(
            f"{event.name} happen in the kernel, which this user may not count (kernel.perf_event_paranoid is {level})",
            LOWER_PARANOID,
        )
    try:
        value = try_out(papi, list(dict.fromkeys((event.name, TASK_CLOCK))))[0]
    except PapiError as error:
        return Unavailable(_refusal(event.name, error))
    if value == 0 and event.busy_loop_moves:
        return Unavailable(f"{event.name} opens but stays 0 where it must count: this processor does not implement it")
    return None


def _refusal(name: str, error: PapiError) -> str:
    if error.code == ECNFLCT:
        return f"{name} never gets a hardware counter: another user holds them all ({error})"
    if error.code == ENOEVNT:
        return f"this machine's PMU does not offer {name} (PAPI: {error})"
    return f"PAPI refuses {name} ({error})"


def pack(papi: Papi, events: Sequence[Event], bundles: Iterable[Sequence[str]] = ()) -> list[tuple[str, ...]]:
    """The events in few sets that PAPI counts without a conflict. Software events and ``COMPANIONS``, with which the
    others are compared, are in every set as far as they fit; those of a bundle (a metric's) stay together where they
    fit."""
    software = tuple(event.name for event in events if event.kind == "software")
    hardware = [event.name for event in events if event.kind == "hardware"]
    core = tuple(name for name in COMPANIONS if name in hardware)
    rest = [name for name in hardware if name not in core]

    def fits(chunk: tuple[str, ...], base: tuple[str, ...] = core) -> bool:
        return counts_together(papi, (*base, *chunk, *software))

    if not fits(()):  # not even the core events together: every event alone
        alone = [(name,) for name in (*core, *rest) if fits((name,), ())]
        return [(*chunk, *software) for chunk in alone] or [software]
    chunks: list[tuple[str, ...]] = []
    whole = [tuple(name for name in dict.fromkeys(bundle) if name in rest) for bundle in bundles]
    for bundle in dict.fromkeys([*filter(None, whole), *((name,) for name in rest)]):
        for part in [bundle] if fits(bundle) else [(name,) for name in bundle]:
            _place(part, chunks, fits)
    chunks = [tuple(sorted(chunk, key=rest.index)) for chunk in chunks]
    with_core = [(*core, *chunk, *software) for chunk in chunks if fits(chunk)]
    without_core = [(*chunk, *software) for chunk in chunks if not fits(chunk) and fits(chunk, ())]
    if core and not with_core:
        with_core = [(*core, *software)]
    return [*with_core, *without_core] or [software]


def _place(part: tuple[str, ...], chunks: list[tuple[str, ...]], fits: Callable[[tuple[str, ...]], bool]) -> None:
    """Adds the part to a chunk that it fits into, best one that has parts of it already; else makes a new one."""
    by_overlap = sorted(range(len(chunks)), key=lambda number: -len(set(part) & set(chunks[number])))
    for number in by_overlap:
        joined = tuple(dict.fromkeys((*chunks[number], *part)))
        if joined == chunks[number] or fits(joined):
            chunks[number] = joined
            return
    chunks.append(part)


def counts_together(papi: Papi, names: Sequence[str]) -> bool:
    """Whether PAPI counts the events in one set."""
    try:
        try_out(papi, names)
    except PapiError:
        return False
    return True


def try_out(papi: Papi, names: Sequence[str]) -> tuple[int, ...]:
    """The values of a set of the events on the calling thread after a little work. Raises ``PapiError``."""
    number = papi.open_set(names, None)
    try:
        papi.start(number)
        perf_event.busy_work()
        return papi.values(number, len(names))
    finally:
        papi.close_set(number)
