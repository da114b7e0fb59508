"""Whether what Python compiles of modules is kept whole where it is kept.

Where files may not grow as they like, or the disk is nearly full, Python (gh-126606) puts compiled modules in place
that are cut, and no program can import them any more. ``hwprof/__init__.py`` asks before any other module of hwprof is
imported."""

from __future__ import annotations

import os
import resource
import sys
from typing import Final

ROOM_BYTES: Final = 1 << 28
"""More than the compiled modules of all that hwprof imports, with what else may be written meanwhile."""


def keep_whole() -> None:
    """Neither this process nor what it starts keeps any bytecode that might be cut."""
    if not may_be_kept():
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def may_be_kept() -> bool:
    """Files have no limit, and there is room."""
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY and _free_bytes() >= ROOM_BYTES


def _free_bytes() -> int:
    try:
        found = os.statvfs(sys.prefix)
    except OSError:
        return 0  # nothing is written there
    return found.f_bavail * found.f_frsize
