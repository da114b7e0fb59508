"""The log of a pass, which a model or a tool that prints without end shall not fill the disk with."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from hwprof.session.watcher import Watcher

BOUND_BYTES: Final = 64 << 20
"""Nobody reads more; the warnings of a model that prints some at each call stay far below it."""

KEPT_BYTES: Final = BOUND_BYTES // 4
"""What was printed first, where the trouble begins, stays."""

LAST_BYTES: Final = 1 << 16
"""What was printed last stays too: the words of a worker that dies."""

LOOK_EVERY_S: Final = 0.25
"""What comes between two looks is not bounded: some hundred MB, of a program that does nothing but print."""


class BoundedLog(Watcher):
    """A file that processes print into, and that is cut while it is larger than ``BOUND_BYTES``. It is known by its
    descriptor: whatever is put in its place is neither written to nor cut."""

    def __init__(self, path: Path) -> None:
        """A new file, in the place of whatever is there. Raises ``OSError``."""
        super().__init__("bounded-log", LOOK_EVERY_S)
        path.unlink(missing_ok=True)
        # at its end: whoever prints after it was cut would else go on where it was, and leave a hole
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor: int | None = os.open(path, flags, 0o666)
        self.dropped_bytes = 0
        """At least: what is printed in the moment of the cut is not counted."""

    def fileno(self) -> int:
        """Its descriptor, until it is closed."""
        assert self._descriptor is not None
        return self._descriptor

    def append(self, text: str) -> None:
        """Writes to its end. Raises ``OSError``."""
        os.write(self.fileno(), text.encode(errors="replace"))

    def look(self, now_s: float) -> None:
        """Takes out its middle where it is too large."""
        with suppress(OSError):
            size_bytes = os.fstat(self.fileno()).st_size
            if size_bytes > BOUND_BYTES:
                last = os.pread(self.fileno(), LAST_BYTES, size_bytes - LAST_BYTES)
                os.ftruncate(self.fileno(), KEPT_BYTES)
                self.dropped_bytes += size_bytes - KEPT_BYTES - len(last)
                os.write(self.fileno(), last)

    def close(self) -> None:
        """When nobody prints any more; it says itself what is missing. May be called again."""
        self.stop()
        if self._descriptor is None:
            return
        self.look(0.0)
        if self.dropped_bytes:
            with suppress(OSError):
                self.append(
                    f"\nhwprof: {self.dropped} were dropped behind the first {KEPT_BYTES >> 20} MiB of this file\n"
                )
        os.close(self._descriptor)
        self._descriptor = None

    @property
    def dropped(self) -> str:
        """How much of it, in words."""
        return f"{self.dropped_bytes / 1e6:,.0f} MB of what the model or its tools printed"
