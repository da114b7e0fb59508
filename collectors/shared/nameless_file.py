"""A file that nobody else sees, for what would take too much memory."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

RESERVE_BYTES: Final = 32 << 20
"""So much room is left on the disk to what was measured before, which may not be written yet."""


class NamelessFile:
    """It is gone when it is closed and nothing of it is mapped."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder``: that has room for it; None: that for temporary files. Raises ``OSError``."""
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (open between calls)

    def append(self, data: memoryview) -> None:
        """``data``: bytes. Raises ``OSError``, also where there would be too little room left."""
        room = os.fstatvfs(self._file.fileno())
        if room.f_bavail * room.f_frsize < len(data) + RESERVE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        while data:
            data = data[self._file.write(data) :]

    def mapped(self) -> mmap.mmap:
        """All that is in it, which is something. Raises ``OSError``."""
        return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def close(self) -> None:
        """What is mapped stays as it is."""
        with suppress(OSError):
            self._file.close()
