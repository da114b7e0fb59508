"""The collector ``cprofile``: a profile of each stage, in iterations of its own.

cProfile makes each call of a function slower, small ones most; it follows the thread that calls the model only.
"""

from __future__ import annotations

import marshal
import platform
import pstats
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from collectors.cprofile.calls import python_calls
from collectors.cprofile.stage_profiles import StageProfiles, active_profiler
from collectors.shared.python_origins import framework_paths, profiler_paths
from hwprof.collector.contract import Availability, Collected, Collector, Note, NoteKind, PassContext, Tool
from hwprof.errors import HwprofError
from hwprof.run.details import CallsDetail

ITERATIONS: Final = 3

WHOLE: Final = "all-stages"
SUFFIX: Final = ".prof"
"""As snakeviz and others look for."""

TAKEN: Final = "Another profiling tool is already active"
"""What cProfile raises, from Python 3.12 on, where the model's code starts a second one."""

ACTIVE: Final = "another profiler is active on the thread that calls the model"
SWITCH_OFF: Final = "switch it off: Python has room for one"


class CProfileCollector(Collector):
    """In three iterations when the others have stopped. A stage in another one is that one's no more."""

    own_iterations = ITERATIONS

    def __init__(self) -> None:
        self._profiles = StageProfiles()
        self._raw: Path | None = None
        self._iterations = 0

    def availability(self) -> Availability:
        """It is Python's own."""
        return Availability(tools=(_tool(),))

    def start(self, context: PassContext) -> None:
        """Nothing yet."""
        self._raw = context.raw

    @contextmanager
    def own_iteration(self) -> Iterator[None]:
        """Raises ``HwprofError`` where another profiler follows this thread: there can be one only."""
        if active_profiler() is not None:
            raise HwprofError(ACTIVE, SWITCH_OFF)
        self._iterations += 1
        try:
            yield
        except ValueError as error:
            if TAKEN in str(error):
                raise HwprofError(ACTIVE, SWITCH_OFF) from error
            raise

    def own_stage(self, name: str) -> AbstractContextManager[None]:
        """Its calls are counted."""
        return self._profiles.stage(name)

    def stop(self) -> Collected:
        """All calls, and files for pstats and snakeviz: one a stage, and one of all together."""
        if self._raw is None or not self._iterations:
            return Collected()
        own = profiler_paths()
        detail = CallsDetail(
            version=platform.python_version(),
            iterations=self._iterations,
            files=self._write(self._raw),
            profiler_paths=own,
            framework_paths=framework_paths(),
        )
        text = "another profiler is active, set by the model's code: calls from then on are not counted"
        notes = [Note(NoteKind.INCOMPLETE, text, "cProfile", SWITCH_OFF)] if self._profiles.displaced else []
        return Collected({"python_calls": python_calls(self._profiles.by_stage, own)}, notes, detail, tools=[_tool()])

    def _write(self, raw: Path) -> list[str]:
        """The files' names. Not by the profiles' own methods: these would switch off whoever profiles by now."""
        files = []
        for stage, profile in self._profiles.by_stage.items():
            profile.snapshot_stats()
            files.append(_file_of(stage))
            (raw / files[-1]).write_bytes(marshal.dumps(profile.stats))
        if files:
            pstats.Stats(*(str(raw / file) for file in files)).dump_stats(raw / f"{WHOLE}{SUFFIX}")
            files.append(f"{WHOLE}{SUFFIX}")
        return files


def _tool() -> Tool:
    return Tool(name="cProfile", version=platform.python_version())


def _file_of(stage: str) -> str:
    return re.sub(r"[^\w.-]", "_", stage).lstrip(".") + SUFFIX
