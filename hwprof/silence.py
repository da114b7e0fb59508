"""Libraries that write to standard error what they think of a stranger's file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STANDARD_ERROR: Final = 2


@contextmanager
def silent_libraries() -> Iterator[None]:
    """Within it nobody of this process writes there: what is wrong with the file is told once, by us."""
    try:
        kept = os.dup(STANDARD_ERROR)
    except OSError:  # it is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STANDARD_ERROR)
    try:
        yield
    finally:
        os.dup2(kept, STANDARD_ERROR)
        os.close(kept)
        os.close(nowhere)
