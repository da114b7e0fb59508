"""What a collector is: the one small protocol that every source of measurements fulfils.

Collectors are found through the entry-point group ``hwprof.collectors``; a third party adds one by declaring its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:  # the command line lists collectors without either
    import polars as pl

    from hwprof.run.manifest import ClockRecord, EventInfo, MetricDefinition


class Place(Enum):
    """Where a collector sits."""

    IN_PROCESS = "in-process"  # in the worker
    EXTERNAL = "external"  # in the supervisor, watching the worker's pid
    LAUNCHER = "launcher"  # its tool launches the worker


@dataclass(frozen=True)
class Availability:
    """Whether a collector works on this machine for this user; if not, why, and the command that would change it."""

    ok: bool
    reason: str | None = None
    remedy: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lacks: str | None = None  # what it cannot count on this machine and a fallback could


@dataclass(frozen=True)
class PassContext:
    """What a collector is told when it starts."""

    pass_name: str
    pid: int  # of the worker
    main_tid: int
    raw: Path  # the pass's folder for the tool's own files; exists
    options: dict[str, Any]  # the collector's own
    step: Callable[[], None] = lambda: None  # in a slow pass: the user is told that another leaf layer is counted


@dataclass
class Collected:
    """What a collector has at the end: rows of the run's tables (any subset of the columns that may be null may be
    missing), and what the manifest should keep."""

    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)
    events: list[EventInfo] = field(default_factory=list)
    metrics: list[MetricDefinition] = field(default_factory=list)
    clocks: list[ClockRecord] = field(default_factory=list)


class Collector(Protocol):
    """A source of measurements. A new instance serves one pass."""

    name: str
    summary: str  # one line: what it can tell
    place: Place
    passes: frozenset[str]  # in which passes it runs
    wants_idle: bool  # whether the machine should rest for a moment before the first iteration

    def availability(self) -> Availability:
        """Whether it works here. Cheap, without side effects, callable without ``start``."""
        ...

    def start(self, context: PassContext) -> None:
        """Begins. IN_PROCESS and LAUNCHER: in the worker, after warm-up. EXTERNAL: in the supervisor, once the worker's
        pid is known."""
        ...

    def stop(self) -> Collected:
        """Ends, and hands over what was collected. Called once, also after a failed workload."""
        ...


@dataclass(frozen=True)
class CountedSpan:
    """A span between two edges at which counters were read; edges are numbered from 0 in order of reading."""

    span: int
    iteration: int
    begin_edge: int
    end_edge: int


@runtime_checkable
class EdgeCounter(Protocol):
    """What an IN_PROCESS collector offers beside ``Collector`` if it reads counters at span edges.

    The span recorder calls one of the readers' functions at each edge, on the main thread; the k-th call in a pass is
    edge k. It is the hottest call in hwprof: it only appends raw bytes. ``begin_iteration`` comes before the first
    edge of every iteration, and is the time to look for new threads and to switch event sets.
    """

    def event_sets(self) -> Sequence[Sequence[str]]:
        """The sets that iterations rotate through, each a list of event names; at least one."""
        ...

    def begin_iteration(self, event_set: int) -> None:
        """The next edges belong to an iteration that counts this set."""
        ...

    def full_reader(self) -> Callable[[], None]:
        """The function for an iteration's or a stage's edge: every thread is read, idle ones as well."""
        ...

    def enter_reader(self) -> Callable[[], None]:
        """The function for a layer's begin: every thread that takes part in the work is read, the main thread last."""
        ...

    def leave_reader(self) -> Callable[[], None]:
        """The function for a layer's end: every thread that takes part in the work is read, the main thread first."""
        ...

    def gap_reader(self) -> Callable[[], None]:
        """The function for an edge so short after the last one that the workers cannot have done anything but wait:
        only the main thread is read, the workers' values are the last edge's. It counts as an edge as well."""
        ...

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        """The ``counts`` rows (without ``pass``) of these spans: for each, every thread and event, differenced."""
        ...


@runtime_checkable
class Choosing(Protocol):
    """What a collector offers beside if it can tell bad options before anything is measured.

    Options of counting collectors: ``events`` (names; none given: the defaults), ``kernel`` (false: hardware events
    leave the kernel's code out), ``alone`` (nobody else counts at the same edges), ``counters_held_by`` (the name of a
    collector that holds counters, see ``HoldingCounters``).
    """

    def check_options(self, options: dict[str, Any]) -> None:
        """Raises ``UsageError`` for options that ``start`` would refuse."""
        ...


@runtime_checkable
class Following(Protocol):
    """What an EXTERNAL collector offers beside if it must know how far the worker is. It is told by messages, so a
    little late; what it does then happens while the worker goes on."""

    def work_begins(self) -> None:
        """Warm-up iterations come next. Raises ``HwprofError`` where the collector cannot do its part after all."""
        ...

    def step(self) -> None:
        """An iteration is done."""
        ...

    def work_ends(self) -> None:
        """The last iteration is done; the worker lives on for a while."""
        ...


@runtime_checkable
class OwnIterations(Protocol):
    """What an IN_PROCESS collector offers beside if its looking would spoil what the others see: when they have
    stopped, the worker does more iterations for it. They are kept as warm-up iterations, so no other figure is
    made of them."""

    own_iterations: int
    """How many."""

    def own_iteration(self) -> AbstractContextManager[None]:
        """What each of them happens inside of."""
        ...


@runtime_checkable
class HoldingCounters(Protocol):
    """What an EXTERNAL collector offers beside if it has hardware counters of the worker's threads for itself while it
    runs: who counts inside makes do with those that it leaves."""

    def holds_counters(self) -> bool:
        """Whether it will here; asked after ``availability``."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """What a collector offers beside if the worker must be started with more than the user's environment."""

    def worker_environment(self) -> Mapping[str, str]:
        """The variables; the worker's own libraries read them."""
        ...


@runtime_checkable
class Launcher(Protocol):
    """What a LAUNCHER collector offers beside: the worker runs under its tool.

    An instance in the supervisor says how the worker is launched, and reads what the tool has written when the worker
    is gone; another one in the worker is started and stopped as if it sat inside.
    """

    def command(self, raw: Path, options: dict[str, Any]) -> Sequence[str]:
        """What stands before the worker's own command. ``raw`` is the folder for the tool's files; it exists."""
        ...

    def collect_results(self, raw: Path, pid: int) -> Collected:
        """What the tool has written, and what the instance in the worker has left beside it. ``pid`` is the worker's,
        which has ended."""
        ...


@dataclass(frozen=True, kw_only=True)
class OwnPass:
    """A pass that is there for one collector only."""

    name: str
    collecting: bool = True  # false: a companion, which does the same work with no collector at all
    iterations: int | None = None  # None: as many as the measure pass
    warmup: int | None = None
    alternate: bool = False  # as in the measure pass, most iterations only time their layers
    environment: Mapping[str, str] = field(default_factory=dict)  # of the worker
    threads: int | None = None  # None: as the user wants
    instruction_set: str | None = None  # what the environment holds the kernels to, if it is not the machine's own
    times_from: str | None = None  # the companion: its layers' times belong to this pass's counts
    slow: bool = False  # progress is told, and an interruption keeps what was counted, by layer and not by iteration
    startup_s: float = 0.0  # what it takes until the first iteration, beside the companion's own; roughly
    slowdown: float = 1.0  # how much longer an iteration takes than in the companion; roughly
    call_s: float = 0.0  # what counting a call of a leaf layer takes beside; roughly


@runtime_checkable
class OwnPasses(Protocol):
    """What a collector offers beside if it cannot share a pass with others: it runs where it was asked for by name."""

    def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
        """Its passes in order: companions first. Raises ``UsageError`` for options that make no sense."""
        ...


@runtime_checkable
class KernelCounter(Protocol):
    """What an ``EdgeCounter`` offers beside if it can tell functions and JIT kernels apart."""

    def kernel_tables(self, spans: Sequence[CountedSpan]) -> dict[str, pl.DataFrame]:
        """The rows of ``kernels`` and ``kernel_counts`` (without ``pass``) of these spans."""
        ...
