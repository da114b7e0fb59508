"""What the process writes to its standard output, kept in a file for a while.

oneDNN prints with the C library, below Python's ``sys.stdout``, so the descriptor itself is exchanged, and the buffers
of both are emptied before and after.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

STANDARD_OUTPUT: Final = 1


@contextmanager
def standard_output_to(path: Path) -> Iterator[None]:
    """Everything that is written inside goes to the end of the file, and only there."""
    _empty_buffers()
    kept = os.dup(STANDARD_OUTPUT)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), STANDARD_OUTPUT)
        try:
            yield
        finally:
            _empty_buffers()
            os.dup2(kept, STANDARD_OUTPUT)
    finally:
        os.close(kept)


def _empty_buffers() -> None:
    with suppress(Exception):  # the model may have put anything in its place
        sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
