"""What can stand in the place of a file that hwprof reads."""

from __future__ import annotations

import os
from pathlib import Path


def fifo(file: Path) -> None:
    """A pipe that nobody writes to."""
    file.unlink()
    os.mkfifo(file)


def device(file: Path) -> None:
    """A link to what never ends."""
    file.unlink()
    file.symlink_to("/dev/zero")
