"""The collector ``instrumented``: exact counts of what was executed, per layer, thread and kernel, without a PMU."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from collectors.instrumented.cache_model import CacheModel, wanted
from collectors.instrumented.engine import FRIDA_VERSION, REMEDY, installed_frida
from hwprof.errors import HwprofError
from hwprof.session.collector import Availability, Collected, CountedSpan, OwnPass, PassContext, Place
from hwprof.session.plan import MEASURE

if TYPE_CHECKING:  # the command line lists collectors without numpy, polars and frida
    import polars as pl

    from collectors.instrumented.accounting import Counted, Event, Sums
    from collectors.instrumented.engine import Engine
    from collectors.instrumented.log import Integers, Log
    from collectors.instrumented.selftest import SelfTest
    from collectors.instrumented.unfollowed import Unfollowed
    from hwprof.run.manifest import EventInfo

PASS: Final = "instrumented"

ENVIRONMENT: Final[Mapping[str, str]] = {"ONEDNN_JIT_PROFILE": "2"}
"""oneDNN names its kernels in a perf map; the work is the same as without."""

STARTUP_S: Final = 3.5
SLOWDOWN: Final = 2.5
SLOWDOWN_CACHE_MODEL: Final = 15.0
CALL_S: Final = 0.012
"""For the prediction of how long the pass takes: within a tenth for yolov8n (7 s) and yolov7 (12 s). A call brings code
that is copied at its first execution, and kernels that are told apart."""

UNFOLLOWED_SHARE: Final = 0.002
"""Processor time of threads that were not followed that is worth a note."""


@dataclass(frozen=True)
class _Tally:
    """What was executed and what is told of it."""

    sums: Sums
    events: Sequence[Event]
    provenance: str


class InstrumentedCollector:
    """Follows the thread that calls the model and its OpenMP pool, and counts basic blocks. It needs a pass of its own:
    followed code runs slower, so no time is ever taken from it."""

    name = "instrumented"
    summary = "exact instructions, FLOPs, loads and stores by following the code, per layer and kernel, without a PMU"
    place = Place.INSIDE
    wants_idle = False
    passes = frozenset({PASS})

    def __init__(self) -> None:
        self._context: PassContext | None = None
        self._engine: Engine | None = None
        self._self_test: SelfTest | None = None
        self._unfollowed: Unfollowed | None = None
        self._first_edge = 0
        self._telling: list[int] = []  # the log's intervals in which progress was told
        self._layer_begun = False
        self._log: Log | None = None
        self._caches: CacheModel | None = None
        self._cpu_ns = 0
        self._start_s = 0.0

    # --- Collector

    def availability(self) -> Availability:
        """Whether code can be followed here."""
        if platform.system() != "Linux":
            return Availability(ok=False, reason=f"code is followed on Linux, not on {platform.system()}")
        if platform.machine() != "x86_64":
            return Availability(
                ok=False,
                reason=f"code is followed on x86-64: what instructions of {platform.machine()} do is not known here,"
                " nor how to count in their copies",
            )
        found = installed_frida()
        if found is None:
            return Availability(ok=False, reason="the Python package frida is not installed", remedy=REMEDY)
        if found != FRIDA_VERSION:
            return Availability(ok=False, reason=f"frida {found} is not {FRIDA_VERSION}", remedy=REMEDY)
        return Availability(ok=True, detail={"frida": found})

    def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
        """One: followed code executes the same every time, so one iteration tells everything. Simulated caches are
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
            )
        ]

    def start(self, context: PassContext) -> None:
        """Follows, and tries itself; called on the main thread, after warm-up. Raises ``HwprofError``."""
        from collectors.instrumented.engine import Engine
        from collectors.instrumented.machine_code import loops
        from collectors.instrumented.selftest import self_test
        from collectors.instrumented.unfollowed import Unfollowed, thread_ids

        began_s = time.monotonic()
        self._context = context
        before = thread_ids()
        geometry = wanted(context.options)
        engine = self._engine = Engine(caches=geometry)
        if geometry is not None:
            self._caches = CacheModel(geometry, engine)
        self._unfollowed = Unfollowed(thread_ids() - before)
        loops()  # read while it costs nothing
        engine.follow()
        try:
            self._self_test = self_test(engine)
        except HwprofError:
            engine.unfollow()
            raise
        self._first_edge = engine.memory.control.edges
        self._cpu_ns = time.process_time_ns()
        self._start_s = time.monotonic() - began_s

    def stop(self) -> Collected:
        """The code runs as it stands again. ``counts`` and ``kernel_tables`` work from then on. Raises ``HwprofError``
        where counts are not complete."""
        engine, context, self_test = self._engine, self._context, self._self_test
        if engine is None or context is None or self_test is None:
            return Collected()
        cpu_ns = time.process_time_ns() - self._cpu_ns
        engine.unfollow()
        from collectors.instrumented.frequency import reference_ghz
        from collectors.instrumented.log import Log
        from collectors.instrumented.metrics import definitions

        ghz = reference_ghz()
        self._log = log = Log.of(engine.memory)
        self._check_complete(engine)
        if self._caches is not None:
            self._caches.end(log.edges)
        control = engine.memory.control
        return Collected(
            tables={"threads": self._threads_table(log, context)},
            notes=self._notes(log, cpu_ns) + (self._caches.notes() if self._caches is not None else []),
            detail={
                "frida": FRIDA_VERSION,
                "reference_ghz": round(ghz, 5),
                "start_s": round(self._start_s, 3),
                "self_test": list(self_test.loops),
                "registers_tried": self_test.registers,
                "mended_helpers": self_test.mended_helpers,
                "blocks": [len(blocks) for blocks in log.blocks],
                "partly_decoded_blocks": sum(int(blocks["partly_decoded"].sum()) for blocks in log.blocks),
                "slow_increments": sum(context.slow_increments for context in log.contexts),
                "kept_mappings": control.kept_mappings,
                "edges": control.edges - self._first_edge,
                "log_entries": control.log_used,
                **({"cache_model": self._caches.detail()} if self._caches is not None else {}),
            },
            events=self._infos(),
            metrics=definitions(ghz, [info.name for info in self._infos()]),
        )

    # --- EdgeCounter

    def event_sets(self) -> Sequence[Sequence[str]]:
        """One: everything is counted at once."""
        return [[info.name for info in self._infos()]]

    def begin_iteration(self, event_set: int) -> None:
        """Nothing to be done: threads were chosen at the start."""

    def full_reader(self) -> Callable[[], None]:
        """Logs what every followed thread has executed since the last edge, as do all readers."""
        return self._started().edge

    leave_reader = full_reader

    def enter_reader(self) -> Callable[[], None]:
        """Before it, the user is told that the layer before is counted: between two edges of its own, so that this is
        in nobody's counts."""
        assert self._context is not None, "a reader before start"
        edge, step = self._started().edge, self._context.step
        telling, control = self._telling, self._started().memory.control

        def enter() -> None:
            if self._layer_begun:
                edge()
                step()
                telling.append(control.edges)
            self._layer_begun = True
            edge()

        return enter

    gap_reader = enter_reader

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        """The rows of the spans, without ``pass``: a row for each followed thread and event."""
        import numpy as np
        import polars as pl

        from collectors.instrumented.accounting import count

        assert self._context is not None
        edges = np.array([(span.begin_edge, span.end_edge) for span in spans], dtype=np.int64).reshape(-1, 2)
        windows_ns = np.diff(self._stopped().times_ns[self._edges[edges]], axis=1)[:, 0]
        frames = []
        for tally in self._tallies:
            counted = count(tally.sums, spans, self._edges, tally.events, self._context.main_tid)
            window_ns = pl.Series(windows_ns[counted.span])
            frames.append(_frame(tally, spans, counted).with_columns(enabled_ns=window_ns, running_ns=window_ns))
        return pl.concat(frames)

    def kernel_tables(self, spans: Sequence[CountedSpan]) -> dict[str, pl.DataFrame]:
        """The tables ``kernels`` and ``kernel_counts``, without ``pass``."""
        import polars as pl

        from collectors.instrumented.accounting import count_kernels
        from collectors.symbols.tables import kernels_table

        frames = []
        for tally in self._tallies:
            counted = count_kernels(tally.sums, spans, self._edges, tally.events)
            kernel = pl.Series(counted.kernel).cast(pl.Int32)
            frames.append(_frame(tally, spans, counted).with_columns(kernel=kernel))
        return {"kernels": kernels_table(self._tallies[0].sums.kernels), "kernel_counts": pl.concat(frames)}

    # --- within

    def _stopped(self) -> Log:
        if self._log is None:
            raise RuntimeError("InstrumentedCollector.stop comes first")
        return self._log

    def _started(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("InstrumentedCollector.start comes first")
        return self._engine

    def _infos(self) -> list[EventInfo]:
        """Of all events."""
        from collectors.instrumented.events import events

        counted = [event.info() for event in events()]
        return counted + ([event.info() for event in self._caches.events()] if self._caches is not None else [])

    @cached_property
    def _edges(self) -> Integers:
        """For each edge of the spans its number in the log, which has those around progress beside."""
        import numpy as np

        before_telling = np.array(self._telling, dtype=np.int64) - 1
        return np.setdiff1d(np.arange(self._first_edge, self._stopped().edges), before_telling)

    @cached_property
    def _tallies(self) -> list[_Tally]:
        """Names every block and adds them up."""
        from collectors.instrumented.accounting import add_up, merged, starts_of
        from collectors.instrumented.events import PROVENANCE, events
        from collectors.symbols.domains import Domain
        from collectors.symbols.jit import Known, keep_perf_map
        from collectors.symbols.kernels import Kernel
        from collectors.symbols.process import resolver

        assert self._context is not None, "kernels before start"
        own = Known(*self._started().own_code, Kernel(Domain.OWN, "hwprof", None))
        known = [own, *keep_perf_map(os.getpid(), self._context.raw)]
        names = resolver(os.getpid(), known)
        log = self._stopped()
        numbers, found = names.resolve(starts_of(log))
        becomes, kernels = merged(found)
        numbers = becomes[numbers]
        tallies = [_Tally(add_up(log, numbers, kernels).without(self._telling), events(), PROVENANCE)]
        if self._caches is not None:
            from collectors.instrumented import cache_events

            sums = self._caches.add_up(log, numbers, kernels).without(self._telling)
            tallies.append(_Tally(sums, self._caches.events(), cache_events.PROVENANCE))
        return tallies

    def _check_complete(self, engine: Engine) -> None:
        control = engine.memory.control
        wrong = None
        if control.undecoded:
            wrong = f"the code has an instruction at {control.undecoded_address:#x} that cannot be followed"
        elif any(context.lost_blocks for context in engine.memory.contexts()):
            wrong = "the code has more basic blocks than there is room for"
        elif control.log_overflowed:
            wrong = "there is more to log than there is room for (fewer images help)"
        if wrong is not None:
            raise HwprofError(f"{wrong}, so counts are not complete", "leave it out with --no-instrumented")

    def _notes(self, log: Log, cpu_ns: int) -> list[str]:
        from collectors.symbols.jit import perf_map_of

        notes = ["counts are of user code on the calling thread and its OpenMP pool; the kernel's code is not in them"]
        if not perf_map_of(os.getpid()).exists():
            notes.append("JIT kernels have no names: ONEDNN_JIT_PROFILE=2 was not set, or oneDNN was not used")
        if self._unfollowed is not None:
            worked = self._unfollowed.worked({int(context.tid) for context in log.contexts})
            total_ns = sum(worked.values())
            if total_ns > UNFOLLOWED_SHARE * cpu_ns:
                busy = sorted(worked, key=lambda name: -worked[name])[:5]
                notes.append(
                    f"{total_ns / cpu_ns:.1%} of the processor time was spent on threads that were not followed:"
                    f" {', '.join(name for name in busy if worked[name] > total_ns / 20)}"
                )
        if refused := self._started().memory.control.refused_contexts:
            notes.append(f"too many threads: {refused} basic blocks of those beyond the limit were not counted")
        return notes

    def _threads_table(self, log: Log, context: PassContext) -> pl.DataFrame:
        import polars as pl

        from collectors.counting.threads import thread_name

        tids = dict.fromkeys(int(followed.tid) for followed in log.contexts)
        rows: list[dict[str, Any]] = [
            {
                "pass": context.pass_name,
                "pid": context.pid,
                "tid": tid,
                "name": thread_name(tid),
                "role": "main" if tid == context.main_tid else "worker",
            }
            for tid in tids
        ]
        return pl.DataFrame(rows)


def _frame(tally: _Tally, spans: Sequence[CountedSpan], counted: Counted) -> pl.DataFrame:
    """The rows of a table of counts."""
    import numpy as np
    import polars as pl

    names = pl.Series("event", [event.full_name for event in tally.events], dtype=pl.String)
    numbers = np.array([(span.span, span.iteration) for span in spans], dtype=np.int64).reshape(-1, 2)
    tids = np.array(tally.sums.tids, dtype=np.int64)
    return pl.DataFrame(
        {
            "iteration": pl.Series(numbers[counted.span, 1]).cast(pl.Int32),
            "span": numbers[counted.span, 0],
            "tid": pl.Series(tids[counted.thread]).cast(pl.Int32),
            "event": names.gather(pl.Series(counted.event)),
            "value": counted.value,
        }
    ).with_columns(provenance=pl.lit(tally.provenance))
