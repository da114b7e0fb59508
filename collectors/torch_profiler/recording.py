"""torch.profiler at work. It records in pieces, each with marks at its begin and its end: when it ends it takes seven
kilobytes for every operator that it has recorded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from collectors.torch_profiler import profile_file

RAW_FILE: Final = "trace.json.gz"
"""What torch.profiler itself wrote; of further pieces ``trace-2.json.gz`` and so on."""

MARK: Final = "hwprof.clock"
MARKS: Final = 8

PIECE_EVENTS: Final = 40_000
"""Operators, and allocations, of a piece: the next one begins when there may be so many."""

EVENTS_PER_S: Final = 400_000.0
"""As many as there may be, where nothing is known yet: the smallest operators take some microseconds."""


class Recording:
    """``brackets``: of each mark the monotonic times around it, in nanoseconds."""

    def __init__(self, folder: Path, piece_events: int = PIECE_EVENTS) -> None:
        self._folder = folder
        self._piece_events = piece_events
        self._events_per_s: float | None = None  # of the fastest piece that ended
        self._profile: Any = None
        self._began_s = 0.0
        self.brackets: list[tuple[int, int]] = []
        self.files: list[Path] = []

    def begin(self) -> None:
        """With the first marks of a piece."""
        import torch

        # What torch.profiler itself drives: when that begins it asks for the settings of the compiler, which imports
        # the whole compiler: two seconds, and 850 modules in the process that is measured.
        self._profile = torch.autograd.profiler.profile(
            use_cpu=True, use_kineto=True, record_shapes=True, profile_memory=True
        )
        self._profile.__enter__()
        self._began_s = time.monotonic()
        self._mark()

    def go_on(self) -> None:
        """In another piece, if this one may have become long: between iterations, as that takes tenths of a second."""
        if (time.monotonic() - self._began_s) * (self._events_per_s or EVENTS_PER_S) >= self._piece_events:
            self.end()
            self.begin()

    def end(self) -> None:
        """Writes the profiler's own file of the piece. Raises as ``profile_file.export``."""
        self._mark()
        took_s = time.monotonic() - self._began_s
        profile, self._profile = self._profile, None
        profile.__exit__(None, None, None)
        file = self._folder / (RAW_FILE if not self.files else f"trace-{len(self.files) + 1}.json.gz")
        events = profile_file.export(profile, file)
        self.files.append(file)
        self._events_per_s = max(self._events_per_s or 0.0, events / took_s)

    def _mark(self) -> None:
        import torch

        for _ in range(MARKS):
            begin_ns = time.monotonic_ns()
            with torch.profiler.record_function(MARK):
                self.brackets.append((begin_ns, time.monotonic_ns()))
