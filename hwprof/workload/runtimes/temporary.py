"""Where exported models lie until a runtime has them: a process that is ended meanwhile leaves gigabytes. Needs no
torch."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

PREFIX: Final = "hwprof-onnx-"

TEMPORARY: Final = "HWPROF_TEMPORARY"
"""The variable of the environment that names a folder whose owner takes away what is left there."""


def place() -> str | None:
    """That folder; None: where the system has its own."""
    return os.environ.get(TEMPORARY)


def remove_exported(folder: Path) -> None:
    """What is left there of processes that have ended."""
    for left in folder.glob(f"{PREFIX}*"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
