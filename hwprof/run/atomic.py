"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic(target: Path) -> Iterator[Path]:
    """A temporary path that becomes ``target`` when the block ends well, and goes away when it does not."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(allowed_mode(0o666))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def allowed_mode(mode: int) -> int:
    """Without the permissions that this process's umask takes away, as the system does it with files that it makes."""
    umask = os.umask(0o077)
    os.umask(umask)
    return mode & ~umask


def remove_parts(folder: Path) -> None:
    """Takes away what a process that was ended in the midst of ``atomic`` has left, when none writes any more."""
    for part in folder.glob(".*.part"):
        part.unlink(missing_ok=True)
