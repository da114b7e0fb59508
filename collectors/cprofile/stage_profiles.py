"""A ``cProfile.Profile`` for each stage, switched at its edges: what a stage does inside of another is its own.

Python has one place for a profiler of a thread's calls: that of ``sys.setprofile``, and from 3.12 on a tool number of
``sys.monitoring``. A model's code may have taken it, or take it meanwhile: it stays there.
"""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def active_profiler() -> object | None:
    """Who has the place that cProfile needs: a profiler, or from Python 3.12 on its name; None: it is free."""
    monitoring = getattr(sys, "monitoring", None)
    return sys.getprofile() if monitoring is None else monitoring.get_tool(monitoring.PROFILER_ID)


class StageProfiles:
    """Profiles by stage, in the order in which stages began."""

    def __init__(self) -> None:
        self.by_stage: dict[str, cProfile.Profile] = {}
        self.displaced = False  # the model's code has set a profiler of its own
        self._open: list[cProfile.Profile] = []
        self._on: cProfile.Profile | None = None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Calls inside are the stage's. The one around it, if there is one, rests meanwhile."""
        self._switch_off()
        self._open.append(self.by_stage.setdefault(name, cProfile.Profile()))
        self._switch_on(self._open[-1])
        try:
            yield
        finally:
            self._switch_off()
            self._open.pop()
            if self._open:
                self._switch_on(self._open[-1])

    def _switch_on(self, profile: cProfile.Profile) -> None:
        if active_profiler() is not None:
            self.displaced = True
            return
        profile.enable()
        self._on = profile

    def _switch_off(self) -> None:
        profile, self._on = self._on, None
        if profile is None:
            return
        follows = active_profiler()
        mine = follows is profile or isinstance(follows, str)  # nobody can take a tool's number
        self.displaced |= not mine
        if mine or follows is None:  # else it would take the place from whoever has it
            profile.disable()
