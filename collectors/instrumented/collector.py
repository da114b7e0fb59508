"""The collector ``instrumented``: exact counts of what was executed, per layer, thread and kernel, without a PMU."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from collectors.instrumented.cache_model import CacheModel, wanted
from collectors.instrumented.declaration import LIMIT_S
from collectors.instrumented.detail import FridaDetail
from collectors.instrumented.engine import FRIDA_VERSION, REMEDY, installed_frida
from hwprof.collector.contract import Availability, Collected, Collector, CountedSpan, OwnPass, PassContext, Tool
from hwprof.errors import HwprofError
from hwprof.run.passes import MEASURE

if TYPE_CHECKING:  # the command line lists collectors without numpy, polars and frida
    import polars as pl

    from collectors.instrumented.engine import Engine
    from collectors.instrumented.log import LogFile
    from collectors.instrumented.selftest import Trial
    from collectors.instrumented.tables import Tables
    from collectors.instrumented.uninstrumented import UninstrumentedThreads
    from hwprof.run.manifest import EventInfo

PASS: Final = "instrumented"

ENVIRONMENT: Final[Mapping[str, str]] = {"ONEDNN_JIT_PROFILE": "2"}
"""oneDNN names its kernels in a perf map; the work is the same as without."""

STARTUP_S: Final = 3.5
SLOWDOWN: Final = 2.5
SLOWDOWN_CACHE_MODEL: Final = 15.0
CALL_S: Final = 0.012
"""For the prediction of how long the pass takes: within a tenth for yolov8n (7 s) and yolov7 (12 s). A call brings code
that is copied at its first execution, and kernels that are kept apart."""


class InstrumentedCollector(Collector):
    """Instruments the thread that calls the model and its OpenMP pool, and counts basic blocks. It needs a pass of its
    own: instrumented code runs slower, so no time is ever taken from it."""

    def __init__(self) -> None:
        self._context: PassContext | None = None
        self._engine: Engine | None = None
        self._trial: Trial | None = None
        self._log_file: LogFile | None = None
        self._uninstrumented: UninstrumentedThreads | None = None
        self._first_edge = 0
        self._progress: list[int] = []  # the log's intervals in which progress was reported
        self._tables: Tables | None = None
        self._caches: CacheModel | None = None
        self._cpu_ns = 0
        self._start_s = 0.0

    # --- Collector

    def availability(self) -> Availability:
        """Whether code can be instrumented here."""
        if platform.system() != "Linux":
            return Availability.no(f"code is instrumented on Linux, not on {platform.system()}")
        if platform.machine() != "x86_64":
            return Availability.no(
                f"code is instrumented on x86-64: what instructions of {platform.machine()} do is not known here,"
                " nor how to count in their copies"
            )
        found = installed_frida()
        if found is None:
            return Availability.no("the Python package frida is not installed", REMEDY)
        if found != FRIDA_VERSION:
            return Availability.no(f"frida {found} is not {FRIDA_VERSION}", REMEDY)
        return Availability(detail=FridaDetail(frida=found), tools=(Tool(name="frida", version=found),))

    def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
        """One: instrumented code executes the same every time, so one iteration tells everything. Simulated caches are
        warmed by an iteration that is not counted. Raises ``UsageError``."""
        simulates = wanted(options) is not None
        return [
            OwnPass(
                name=PASS,
                iterations=2 if simulates else 1,
                warmup=1,
                alternate=simulates,
                environment=ENVIRONMENT,
                times_from=MEASURE,
                slow=True,
                startup_s=STARTUP_S,
                slowdown=SLOWDOWN_CACHE_MODEL if simulates else SLOWDOWN,
                call_s=CALL_S,
                silence_s=float(options.get("instrumented_limit", LIMIT_S)),
                limit_option="--instrumented-limit",
            )
        ]

    def start(self, context: PassContext) -> None:
        """Begins instrumentation, and runs the self-test; called on the main thread, after warm-up. Raises
        ``HwprofError``."""
        from collectors.instrumented.engine import Engine
        from collectors.instrumented.log import LogFile
        from collectors.instrumented.machine_code import loops
        from collectors.instrumented.selftest import try_out
        from collectors.instrumented.uninstrumented import UninstrumentedThreads, thread_ids

        began_s = time.monotonic()
        self._context = context
        before = thread_ids()
        geometry = wanted(context.options)
        engine = self._engine = Engine(caches=geometry, place=context.raw)
        if geometry is not None:
            self._caches = CacheModel(geometry, engine)
        loops(), self._infos()  # read while it costs nothing
        self._log_file = LogFile(engine.memory, context.raw)
        engine.instrument()
        try:
            self._trial = try_out(engine)
        except HwprofError:
            engine.uninstrument()
            raise
        self._first_edge = engine.memory.control.edges
        own = thread_ids() - before  # the self-test's are not the model's
        engine.memory.own_threads(own)
        self._uninstrumented = UninstrumentedThreads(own)
        self._cpu_ns = time.process_time_ns()
        self._start_s = time.monotonic() - began_s

    def stop(self) -> Collected:
        """The code runs as it stands again. ``counts`` and ``kernel_tables`` work from then on. Raises ``HwprofError``
        where counts are not complete."""
        engine, context, trial, uninstrumented = self._engine, self._context, self._trial, self._uninstrumented
        log_file = self._log_file
        if engine is None or context is None or trial is None or uninstrumented is None or log_file is None:
            return Collected()
        cpu_ns = time.process_time_ns() - self._cpu_ns
        uninstrumented.end()  # before anything is imported
        engine.uninstrument()
        from collectors.instrumented.log import Log
        from collectors.instrumented.metrics import definitions
        from collectors.instrumented.notes import check_complete, engine_detail, engine_notes, threads_table
        from collectors.instrumented.tables import Tables
        from collectors.shared.time_stamp_counter import reference_ghz

        ghz = reference_ghz()
        log = Log.of(engine.memory, log_file)
        log_file.close()
        check_complete(engine, log_file.failure)
        notes = engine_notes(engine, log, uninstrumented, cpu_ns)
        detail = engine_detail(engine, log, trial.check(log))
        detail.reference_ghz, detail.start_s = round(ghz, 5), round(self._start_s, 3)
        detail.edges = engine.memory.control.edges - self._first_edge
        tools = [Tool(name="frida", version=installed_frida())]
        if self._caches is not None:
            tools += self._caches.tools()
            self._caches.end(log.edges)
            notes += self._caches.notes()
            detail.cache_model = self._caches.detail()
        self._tables = Tables(log, context, engine.own_code, self._first_edge, self._progress, self._caches)
        infos = self._infos()
        return Collected(
            tables={"threads": threads_table(log, context)},
            notes=notes,
            detail=detail,
            events=infos,
            metrics=definitions([info.name for info in infos]),
            tools=tools,
        )

    # --- a counter's

    def event_sets(self) -> Sequence[Sequence[str]]:
        """One: everything is counted at once."""
        return [[info.name for info in self._infos()]]

    def begin_iteration(self, event_set: int) -> None:
        """Nothing to be done: threads were chosen at the start."""

    def full_reader(self) -> Callable[[], None]:
        """Logs what every instrumented thread has executed since the last edge, as do all readers."""
        return self._started().edge

    enter_reader = gap_reader = full_reader

    def leave_reader(self) -> Callable[[], None]:
        """Progress is reported behind it, before another edge of its own, so that this is in nobody's counts."""
        assert self._context is not None, "a reader before start"
        edge, step = self._started().edge, self._context.step
        progress, control = self._progress, self._started().memory.control
        log_file = self._log_file
        assert log_file is not None, "a reader before start"

        def leave() -> None:
            edge()
            step()
            log_file.empty_if_long()
            progress.append(control.edges)
            edge()

        return leave

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        """The rows of the spans, without ``pass``: a row for each instrumented thread and event."""
        return self._stopped().counts(spans)

    def kernel_tables(self, spans: Sequence[CountedSpan]) -> dict[str, pl.DataFrame]:
        """The tables ``kernels``, ``kernel_counts`` and ``repeated_spans``, without ``pass``."""
        return self._stopped().kernels(spans)

    # --- within

    def _stopped(self) -> Tables:
        if self._tables is None:
            raise RuntimeError("InstrumentedCollector.stop comes first")
        return self._tables

    def _started(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("InstrumentedCollector.start comes first")
        return self._engine

    def _infos(self) -> list[EventInfo]:
        """Of all events."""
        from collectors.instrumented.events import events

        counted = [event.info() for event in events()]
        return counted + ([event.info() for event in self._caches.events()] if self._caches is not None else [])
