"""The collector: launches the worker under callgrind, dumps at layer edges, and reads the dumps when all is over."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from collectors.callgrind.declaration import LIMIT_S
from hwprof import programs
from hwprof.collector.contract import (
    Availability,
    Collected,
    Collector,
    CountedSpan,
    Detail,
    Note,
    NoteKind,
    OwnPass,
    PassContext,
    Tool,
)
from hwprof.hardware import machine

if TYPE_CHECKING:
    import polars as pl

    from collectors.callgrind.requests import Requester

PASS: Final = "callgrind"
COMPANION: Final = "measure-sse41"

ENVIRONMENT: Final[Mapping[str, str]] = {
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",  # else MKL chooses by processor, and valgrind's is another than the machine's
    "ONEDNN_JIT_PROFILE": "2",  # the map of kernels
    "PYTHONHASHSEED": "0",  # the same instructions in every run
}
"""valgrind knows no AVX-512, and takes every lane of a fused multiply-add apart: without these the pass takes an hour
or ends with an illegal instruction. The companion has the same, or its times would belong to other code."""

INSTRUCTION_SET: Final = "SSE4.1"
"""What the environment holds the kernels to."""

STARTUP_S: Final = 30.0
SLOWDOWN: Final = 20.0
SLOWDOWN_CACHE_SIM: Final = 70.0
CALL_S: Final = 0.09
"""Roughly, as measured with yolov8n; for the prediction of how long the pass takes. A dump goes through all code that
was ever executed, so a call of a leaf layer costs two of these however short it is."""

VERSION_S: Final = 4.0
"""As long as it may take to tell its version: it is asked in every run."""

INSTALL: Final = "sudo apt-get install -y valgrind"


class ValgrindDetail(Detail, kw_only=True, tag="valgrind"):
    """The valgrind that is installed."""

    version: str


class CallgrindDetail(Detail, kw_only=True, tag="callgrind"):
    """``profile``: callgrind's own file; ``simulated_caches``: what it says of those that it simulated, by name."""

    profile: str
    simulated_caches: dict[str, str] = msgspec.field(default_factory=dict)


class CallgrindCollector(Collector):
    """Instructions by layer and function, and simulated cache misses, of one thread restricted to SSE4.1.

    A second engine, independent of every other: valgrind translates the program and counts while it emulates it. The
    worker's instance reads edges, the supervisor's launches and collects results.
    """

    def __init__(self) -> None:
        self._edges = 0
        self._toggle: Callable[[], None] = _nothing
        self._toggle_and_dump: Callable[[], None] = _nothing
        self._step: Callable[[], None] = _nothing
        self._requester: Requester | None = None
        self._context: PassContext | None = None
        self._command: list[str] = []

    def availability(self) -> Availability:
        """Whether there is a valgrind that starts."""
        valgrind = shutil.which("valgrind")
        if valgrind is None:
            return Availability.no("valgrind is not installed", INSTALL)
        try:
            said = programs.run([valgrind, "--version"], limit_s=VERSION_S)
        except programs.ProgramError as error:
            return Availability.no(str(error), INSTALL)
        found = re.search(rb"valgrind-(\d[\w.-]*)", said.output)
        if said.status or found is None:
            why = said.reason() if said.status else "it does not tell its version"
            return Availability.no(f"valgrind does not start: {why}", INSTALL)
        version = found[1].decode()
        tools = (Tool(name="valgrind", version=version, path=valgrind),)
        return Availability(detail=ValgrindDetail(version=version), tools=tools)

    # The plan

    def own_passes(self, options: dict[str, Any]) -> Sequence[OwnPass]:
        """The companion, then the pass itself. The simulated caches are warmed by an iteration that is not counted."""
        simulates = bool(options.get("cache_sim"))
        return [
            OwnPass(
                name=COMPANION,
                collecting=False,
                environment=ENVIRONMENT,
                threads=1,
                instruction_set=INSTRUCTION_SET,
            ),
            OwnPass(
                name=PASS,
                iterations=2 if simulates else 1,
                warmup=1,
                alternate=simulates,
                environment=ENVIRONMENT,
                threads=1,
                times_from=COMPANION,
                instruction_set=INSTRUCTION_SET,
                slow=True,
                startup_s=STARTUP_S,
                slowdown=SLOWDOWN_CACHE_SIM if simulates else SLOWDOWN,
                call_s=CALL_S,
                silence_s=float(options.get("callgrind_limit", LIMIT_S)),
                limit_option="--callgrind-limit",
            ),
        ]

    # In the supervisor

    def command(self, raw: Path, options: dict[str, Any]) -> Sequence[str]:
        """valgrind with its options."""
        from collectors.callgrind import requests
        from collectors.callgrind.command import command

        valgrind = shutil.which("valgrind") or "valgrind"
        simulates = bool(options.get("cache_sim"))
        waits = requests.can_request()
        self._command = command(valgrind, raw, machine.caches(), cache_sim=simulates, waits=waits)
        return self._command

    def collect_results(self, raw: Path, pid: int) -> Collected:
        """The counts of the spans, and of the functions within them.

        Raises ``ProfileError`` where the profile contradicts itself, and ``OSError``.
        """
        from collectors.callgrind import profile
        from collectors.callgrind.command import PROFILE
        from collectors.callgrind.edges import Edges
        from collectors.callgrind.events import metrics
        from collectors.callgrind.tables import Tables
        from collectors.shared.symbols.jit import keep_perf_map
        from collectors.shared.symbols.resolver import Resolver

        tables = Tables(Edges.read(raw), Resolver([], keep_perf_map(pid, raw)))
        tables.take(profile.read(raw / PROFILE))
        events = tables.events
        notes = []
        if tables.missing_parts:
            text = f"{tables.missing_parts} dumps are missing: their layers have no counts"
            notes.append(Note(NoteKind.INCOMPLETE, text))
        return Collected(
            tables={
                "counts": tables.counts(),
                "kernels": tables.kernels(),
                "kernel_counts": tables.kernel_counts(),
            },
            notes=notes,
            events=[event.info() for event in events],
            metrics=metrics(events),
            detail=CallgrindDetail(profile=PROFILE, simulated_caches=_caches(raw / PROFILE)),
            tools=[self._tool(raw)],
        )

    def _tool(self, raw: Path) -> Tool:
        from collectors.callgrind.command import LOG

        path = self._command[0] if self._command else None
        return Tool(name="valgrind", version=_version(raw / LOG), command=self._command, path=path)

    # In the worker

    def start(self, context: PassContext) -> None:
        """Instrumentation begins. Raises ``HwprofError`` where PyTorch or the process cannot be asked."""
        from collectors.callgrind import requests

        self._toggle, self._toggle_and_dump = requests.torch_requests()
        if requests.can_request():
            self._requester = requests.Requester()
            self._requester.start_instrumentation()
        self._context = context
        self._step = context.step

    def stop(self) -> Collected:
        """Collecting ends; the supervisor reads what was collected."""
        if self._edges:
            self._toggle()
        if self._requester is not None:
            self._requester.stop_instrumentation()
        return Collected()

    def event_sets(self) -> Sequence[Sequence[str]]:
        """One, with everything that the options bring."""
        from collectors.callgrind.events import known

        simulates = self._context is not None and bool(self._context.options.get("cache_sim"))
        return [[event.name for event in known() if simulates or event.sum == ("Ir",)]]

    def begin_iteration(self, event_set: int) -> None:
        """Nothing: there is one set."""

    def full_reader(self) -> Callable[[], None]:
        """All edges are alike."""
        return self._edge

    enter_reader = gap_reader = full_reader

    def leave_reader(self) -> Callable[[], None]:
        """As all others, and the user sees how far it is."""
        return self._leave

    def _edge(self) -> None:
        if self._edges:
            self._toggle_and_dump()
        self._edges += 1
        self._toggle()

    def _leave(self) -> None:
        self._toggle_and_dump()
        self._edges += 1
        self._step()  # while nothing is collected
        self._toggle()

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        """No rows: it would take a minute here. The spans are kept for ``collect_results``."""
        import polars as pl

        from collectors.callgrind.edges import Edges

        assert self._context is not None, "counts before start"
        Edges(self._context.main_tid, self._edges, list(spans)).write(self._context.raw)
        return pl.DataFrame()


def _nothing() -> None: ...


def _version(log: Path) -> str | None:
    """Of valgrind, from the head of its log: ``Using Valgrind-3.19.0 and LibVEX``."""
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            found = re.search(r"Using Valgrind-(\S+) ", lines.read(16384))
    except OSError:
        return None
    return found[1] if found else None


def _caches(profile: Path) -> dict[str, str]:
    """Callgrind's caches, as it reports them."""
    with profile.open(encoding="utf-8", errors="replace") as lines:
        head = "".join(line for _, line in zip(range(30), lines, strict=False))
    found = re.findall(r"^desc: (I1|D1|LL) cache: (\S.*)$", head, re.MULTILINE)
    return dict(found)
