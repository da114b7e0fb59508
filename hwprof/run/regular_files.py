"""Files of a run, and images, are regular files: what can block a reader, or never ends, is refused unread."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


class NotRegularError(OSError):
    """A device, a pipe, a folder, or more than anybody wrote there."""

    def __init__(self, what: str) -> None:
        super().__init__(None, what)


def is_regular(path: Path) -> bool:
    """Whether there is a regular file, or a link to one."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def may_exist(path: Path) -> bool:
    """Whether something is there; also where nobody may look, so that reading it says why it cannot be read."""
    try:
        return path.exists()
    except OSError:
        return True


def lies_in(path: Path, folder: Path) -> bool:
    """Whether the links at ``path``, if any, lead to what is below the folder, which may be reached by links itself."""
    return path.resolve().is_relative_to(folder.resolve())


def read_regular(path: Path, at_most: int) -> bytes:
    """The file's bytes; raises ``OSError`` where it is no regular file or is larger than ``at_most`` bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > at_most:
            raise NotRegularError(f"it has {size} bytes, more than the {at_most} that are read")
        return file.read(size)


def open_regular(path: Path) -> BinaryIO:
    """The file, to be read; raises ``OSError`` where it is no regular one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer blocks no one
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise NotRegularError("it is no regular file")
    return file
