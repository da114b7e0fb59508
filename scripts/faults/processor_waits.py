"""How long a case's processes could run and had no processor: on a machine that other cases keep busy its time in all
says nothing of hwprof."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

LOOK_EVERY_S: Final = 0.5
MOST: Final = 10
"""Times the limit: after so long a case is ended, whatever it waited for."""


class ProcessorWaits:
    """Of the processes of one session (``setsid``), as far as they are seen while they live."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._begin = self._looked = time.monotonic()
        self._waited_ns: dict[str, int] = {}  # by process

    def too_long(self, limit_s: float) -> bool:
        """Whether the case has taken more than so long, without what its processes waited for a processor."""
        now = time.monotonic()
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            self._look()
        passed_s = now - self._begin
        return passed_s > MOST * limit_s or passed_s - self.seconds > limit_s

    @property
    def seconds(self) -> float:
        """That have been waited, of all processes together."""
        return sum(self._waited_ns.values()) / 1e9

    def _look(self) -> None:
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError, IndexError):  # it ended meanwhile; a kernel without scheduler statistics
                if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == self._session:
                    self._waited_ns[folder.name] = int((folder / "schedstat").read_text().split()[1])
