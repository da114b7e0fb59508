"""The collector ``cprofile``: a profile of each stage, in iterations of its own.

cProfile makes each call of a function slower, small ones most; it follows the thread that calls the model only.
"""

from __future__ import annotations

import cProfile
import platform
import pstats
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Final

from collectors.shared.python_origins import framework_paths, profiler_paths
from hwprof.collector.contract import Availability, Collected, Collector, Note, NoteKind, PassContext, Tool
from hwprof.errors import HwprofError
from hwprof.run.details import CallsDetail

if TYPE_CHECKING:
    import polars as pl

ITERATIONS: Final = 3

WHOLE: Final = "all-stages"
SUFFIX: Final = ".prof"
"""As snakeviz and others look for."""

BUILTIN: Final = "~"
"""The file of functions that are no Python, as pstats has it."""


class CProfileCollector(Collector):
    """In three iterations when the others have stopped. A stage in another one is that one's no more."""

    own_iterations = ITERATIONS

    def __init__(self) -> None:
        self._profiles: dict[str, cProfile.Profile] = {}
        self._open: list[cProfile.Profile] = []
        self._raw: Path | None = None
        self._iterations = 0
        self._displaced = False

    def availability(self) -> Availability:
        """It is Python's own."""
        return Availability()

    def start(self, context: PassContext) -> None:
        """Nothing yet."""
        self._raw = context.raw

    @contextmanager
    def own_iteration(self) -> Iterator[None]:
        """Raises ``HwprofError`` where another profiler follows this thread: there can be one only."""
        if sys.getprofile() is not None:
            raise HwprofError("another profiler is active on the thread that calls the model", "switch it off")
        self._iterations += 1
        yield

    @contextmanager
    def own_stage(self, name: str) -> Iterator[None]:
        """The stage around it, if there is one, rests meanwhile."""
        if self._open:
            self._open[-1].disable()
        profile = self._profiles.setdefault(name, cProfile.Profile())
        self._open.append(profile)
        profile.enable()
        try:
            yield
        finally:
            follows: object = sys.getprofile()
            self._displaced |= follows is not profile  # the model's code has set its own
            profile.disable()
            self._open.pop()
            if self._open:
                self._open[-1].enable()

    def stop(self) -> Collected:
        """All calls, and files for pstats and snakeviz: one a stage, and one of all together."""
        if self._raw is None or not self._iterations:
            return Collected()
        files = []
        for stage, profile in self._profiles.items():
            files.append(_file_of(stage))
            profile.dump_stats(self._raw / files[-1])
        if self._profiles:
            whole = pstats.Stats(*self._profiles.values())
            whole.dump_stats(self._raw / f"{WHOLE}{SUFFIX}")
        detail = CallsDetail(
            version=platform.python_version(),
            iterations=self._iterations,
            files=[*files, *([f"{WHOLE}{SUFFIX}"] if files else [])],
            profiler_paths=profiler_paths(),
            framework_paths=framework_paths(),
        )
        text = "the model's code set a profiler of its own: what it did from then on is not in the calls"
        notes = [Note(NoteKind.INCOMPLETE, text, "cProfile")] if self._displaced else []
        tools = [Tool(name="cProfile", version=detail.version)]
        return Collected({"python_calls": self._calls()}, notes, detail, tools=tools)

    def _calls(self) -> pl.DataFrame:
        """The rows of ``python_calls``, without ``pass``."""
        import polars as pl

        rows = [
            (
                stage,
                *_place(entry.code),
                entry.callcount,
                entry.callcount - entry.reccallcount,
                round(entry.inlinetime * 1e9),
                round(entry.totaltime * 1e9),
            )
            for stage, profile in self._profiles.items()
            for entry in profile.getstats()
        ]
        columns = ["stage", "function", "file", "line", "calls", "primitive_calls", "self_ns", "cumulative_ns"]
        text, number = dict.fromkeys(columns[:3], pl.String), dict.fromkeys(columns[4:], pl.Int64)
        return pl.DataFrame(rows, schema={**text, "line": pl.Int32, **number}, orient="row")


def _place(code: CodeType | str) -> tuple[str, str, int]:
    """Function, file and line."""
    if isinstance(code, str):
        return _printable(code), BUILTIN, 0
    name = getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on
    return _printable(name), _printable(code.co_filename), code.co_firstlineno


def _printable(text: str) -> str:
    """Names may hold halves of characters, which no table takes."""
    return text.encode(errors="replace").decode()


def _file_of(stage: str) -> str:
    return re.sub(r"[^\w.-]", "_", stage).lstrip(".") + SUFFIX
