"""What a collector is: one base class, and all that its methods take and return.

A collector is a class that derives from ``Collector`` and a ``Declaration`` (hwprof.collector.declaration) that names
it; an entry point of the group ``hwprof.collectors`` leads to the declaration. A third party needs this module and that
one. Every public name of a collector must be one of the base class: a misspelt method is refused when it is loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hwprof.run.details import Detail
from hwprof.run.manifest import ClockRecord, EventInfo, MetricDefinition, Tool
from hwprof.run.notes import Note, NoteKind
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:  # the process that is measured has no threads of a table library in it
    import polars as pl

__all__ = [
    "Availability",
    "ClockRecord",
    "Collected",
    "Collector",
    "CountedSpan",
    "Detail",
    "EventInfo",
    "MetricDefinition",
    "Note",
    "NoteKind",
    "OwnPass",
    "PassContext",
    "Tool",
    "Unavailable",
]


@dataclass(frozen=True)
class Availability:
    """Whether a collector works on this machine for this user; if not, why, and the command that would change it."""

    unavailable: Unavailable | None = None  # None: it works
    detail: Detail | None = None
    notes: tuple[Note, ...] = ()
    lacks: str | None = None  # what it cannot count on this machine and a fallback could
    tools: tuple[Tool, ...] = ()  # programs and libraries that it would have at work, with their versions

    @classmethod
    def no(cls, reason: str, remedy: str | None = None) -> Availability:
        """It does not work here."""
        return cls(Unavailable(reason, remedy))

    @property
    def ok(self) -> bool:
        """Whether it works."""
        return self.unavailable is None

    @property
    def reason(self) -> str | None:
        """Why it does not."""
        return self.unavailable.reason if self.unavailable is not None else None

    @property
    def remedy(self) -> str | None:
        """What would change that."""
        return self.unavailable.remedy if self.unavailable is not None else None


@dataclass(frozen=True)
class PassContext:
    """What a collector gets when it starts."""

    pass_name: str
    pid: int  # of the worker
    main_tid: int
    raw: Path  # the pass's folder for the tool's own files; exists
    options: dict[str, Any]  # the collector's own, by ``Option.name``
    step: Callable[[], None] = lambda: None  # in a slow pass: the user is told that another leaf layer is counted


@dataclass
class Collected:
    """What a collector has at the end: all of it is kept, wherever the collector sits.

    ``tables``: rows of the run's tables (hwprof.run.schema), without ``pass``; columns that may be null may be missing.
    Rows of ``spans`` need no ``span``, ``iteration`` and ``warmup``: these follow from when they begin.
    """

    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    detail: Detail | None = None
    events: list[EventInfo] = field(default_factory=list)
    metrics: list[MetricDefinition] = field(default_factory=list)
    clocks: list[ClockRecord] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)  # none: those of its ``Availability``


@dataclass(frozen=True)
class CountedSpan:
    """A span between two edges at which counters were read; edges are numbered from 0 in order of reading."""

    span: int
    iteration: int
    begin_edge: int
    end_edge: int


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
    instruction_set: str | None = None  # what the environment restricts the kernels to, if not the machine's own
    times_from: str | None = None  # the companion: its layers' times belong to this pass's counts
    slow: bool = False  # progress is told, and an interruption keeps what was counted, by layer and not by iteration
    startup_s: float = 0.0  # what it takes until the first iteration, more than the companion; roughly
    slowdown: float = 1.0  # how much longer an iteration takes than in the companion; roughly
    limit_s: float | None = None  # it is ended when it takes longer
    silence_s: float | None = None  # or when not a step of it is done in that time
    limit_option: str | None = None  # the option that allows it longer
    call_s: float = 0.0  # what counting a call of a leaf layer takes on top; roughly


def _nothing() -> None: ...


class Collector(ABC):
    """A source of measurements. A new instance, made without arguments, serves one pass.

    Three methods are everybody's; the others are abilities, each with a default that does nothing. What goes wrong in
    any of them costs this collector's data only; raise ``HwprofError`` with a remedy where there is one.
    """

    own_iterations: int = 0
    """Of an in-process collector whose looking would spoil what the others see: as many more iterations are done for it
    when they have stopped, each inside of ``own_iteration``. They are kept as warm-up, so no other figure is made of
    them."""

    @abstractmethod
    def availability(self) -> Availability:
        """Whether it works here. Cheap, without side effects, callable without ``start``."""

    @abstractmethod
    def start(self, context: PassContext) -> None:
        """Begins. IN_PROCESS and LAUNCHER: in the worker, after warm-up, on the thread that calls the model. EXTERNAL:
        in the supervisor, once the worker's pid is known."""

    @abstractmethod
    def stop(self) -> Collected:
        """Ends, and hands over what was collected. Called once after ``start``, also after a failed workload; where
        ``start`` failed it may be called too, and then only gives back what was taken."""

    # --- What the user chose

    def check_options(self, options: dict[str, Any]) -> None:  # noqa: B027 (an ability: the default does nothing)
        """Raises ``UsageError`` for options that ``start`` would refuse: nothing has been measured yet.

        Counters get more than they declare: ``events`` (names; none given: the defaults), ``kernel`` (false: hardware
        events leave the kernel's code out), ``alone`` (nobody else counts at the same edges), ``counters_held_by`` (the
        name of the collector that has hardware counters for itself, see ``holds_counters``).
        """

    # --- The worker's environment

    def worker_environment(self) -> Mapping[str, str]:
        """The variables that the worker must be started with: its own libraries read them."""
        return {}

    # --- An external collector that must know how far the worker is: told by messages, so a little late

    def work_begins(self) -> None:  # noqa: B027 (an ability: the default does nothing)
        """Warm-up iterations come next. Raises ``HwprofError`` where the collector cannot do its part after all."""

    def step(self) -> None:  # noqa: B027 (an ability: the default does nothing)
        """An iteration is done."""

    def work_ends(self) -> None:  # noqa: B027 (an ability: the default does nothing)
        """The last iteration is done; the worker lives on for a while."""

    def holds_counters(self) -> bool:
        """Whether an external collector will have hardware counters of the worker's threads for itself, so that those
        who count in the process make do with the others; asked after ``availability``."""
        return False

    def own_processes(self) -> Sequence[int]:
        """The processes that work for an in-process collector while it measures: the CPU time that they take is
        hwprof's doing, and no other program's. Asked after ``start``."""
        return ()

    # --- An in-process collector that looks between iterations

    def iteration_edge(self) -> None:  # noqa: B027 (an ability: the default does nothing)
        """Just before and just after each iteration that is measured, outside of it, on the thread that calls the
        model. It should take no longer than some 0.1 ms: caches and frequency are to stay those of the work."""

    def between_iterations(self) -> None:  # noqa: B027 (an ability: the default does nothing)
        """Between two iterations that are measured, when everybody has looked: may take as long as it must."""

    # --- Iterations and passes of its own

    def own_iteration(self) -> AbstractContextManager[None]:
        """What each of the ``own_iterations`` happens inside of."""
        return nullcontext()

    def own_stage(self, name: str) -> AbstractContextManager[None]:
        """In an own iteration, what each stage of the pipeline happens inside of. Stages may have others in them."""
        return nullcontext()

    def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
        """Its passes in order, companions first, where it is declared with ``own_passes``. Raises ``UsageError`` for
        options that make no sense."""
        return ()

    # --- A launcher: the worker runs under its tool. An instance in the supervisor has these two, another one in the
    # worker is started and stopped as if it were in-process.

    def command(self, raw: Path, options: dict[str, Any]) -> Sequence[str]:
        """What stands before the worker's own command. ``raw`` is the folder for the tool's files; it exists."""
        return ()

    def collect_results(self, raw: Path, pid: int) -> Collected:
        """What the tool has written, and what the instance in the worker has left there. ``pid`` is the worker's, which
        has ended."""
        return Collected()

    def clean_up(self, raw: Path, pid: int) -> None:  # noqa: B027 (an ability: the default does nothing)
        """Takes away what the tool has left where it could not end by itself. The worker is gone, however it ended."""

    # --- A counter, read where spans begin and end

    def event_sets(self) -> Sequence[Sequence[str]]:
        """The sets that iterations rotate through, each a list of event names; at least one, once it has started."""
        return ()

    def begin_iteration(self, event_set: int) -> None:  # noqa: B027 (an ability: the default does nothing)
        """The next edges belong to an iteration that counts this set: the time to look for new threads."""

    def full_reader(self) -> Callable[[], None]:
        """The function for an iteration's or a stage's edge: every thread is read, idle ones as well.

        The recorder fetches the readers once, and calls one of them at each edge, on the main thread; the k-th call in
        a pass is edge k. It is the hottest call in hwprof: it only appends raw bytes.
        """
        return _nothing

    def enter_reader(self) -> Callable[[], None]:
        """The function for a layer's begin: every thread that takes part in the work is read, the main thread last."""
        return _nothing

    def leave_reader(self) -> Callable[[], None]:
        """The function for a layer's end: every thread that takes part in the work is read, the main thread first."""
        return _nothing

    def gap_reader(self) -> Callable[[], None]:
        """The function for an edge so short after the last one that the workers cannot have done anything but wait:
        only the main thread is read, the workers' values are the last edge's. It counts as an edge as well."""
        return _nothing

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        """The ``counts`` rows (without ``pass``) of these spans: for each, every thread and event, differenced. Called
        after ``stop``."""
        import polars as pl

        return pl.DataFrame()

    def kernel_tables(self, spans: Sequence[CountedSpan]) -> dict[str, pl.DataFrame]:
        """Of a counter that can tell functions and JIT kernels apart: all rows of ``kernels``, and of ``kernel_counts``
        those of these spans, both without ``pass``; ``repeated_spans`` where it leaves some out. Called after
        ``counts``, for some spans at a time: all of them together can be millions of rows."""
        return {}


READERS: Final = ("full_reader", "enter_reader", "leave_reader", "gap_reader")
EDGE_METHODS: Final = ("event_sets", *READERS, "counts")
"""What a counter implements: all of them."""


def counts_at_edges(collector: Collector) -> bool:
    """Whether it reads counters at the edges of spans."""
    return type(collector).event_sets is not Collector.event_sets


def looks_between_iterations(collector: Collector) -> bool:
    """Whether it is to be called at the edges of iterations."""
    return type(collector).iteration_edge is not Collector.iteration_edge
