"""A device that becomes full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.requirements import missing, require_tool


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Inside it ``folder`` (which is made) is a file system of that size (``64k``). Where nobody may mount one, the
    test is skipped, or fails in CI."""
    folder.mkdir()
    mount = [require_tool("mount"), "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        missing("the right to mount a small file system")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
