"""What a process in which a model's code runs says when it gives up."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path
from typing import Final

from hwprof.errors import (
    NO_MEMORY,
    OF_SIZE,
    STAYS,
    FullDiskError,
    HwprofError,
    described,
    is_full_disk,
    is_out_of_memory,
    of_system,
)
from hwprof.session.messages import Failed

LONGEST_TRACE: Final = 1 << 16
"""Characters of a traceback that are told."""


def last_words(error: BaseException, place: str) -> Failed:
    """Of the exception that is being handled, whatever it is. ``place``: where the process writes."""
    if isinstance(error, HwprofError):
        return Failed(error.message, error.remedy, error.exit_code, None, _trace())
    if isinstance(error, FileNotFoundError) and not Path(place).exists():
        return Failed(f"{place} is gone", STAYS, 1, None)
    if is_full_disk(error):
        full = FullDiskError(place)
        return Failed(full.message, full.remedy, full.exit_code, None)
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return Failed(f"cannot write to {place}: a file may not become that large", OF_SIZE, 1, None)
    if is_out_of_memory(error):
        return Failed(NO_MEMORY, "a smaller input", 1, _trace())
    return Failed(_one_line(error), None, 1, _trace())


def _trace() -> str:
    """Without its middle where it is too long: its end is the error, which may hold a whole tensor."""
    try:
        text = traceback.format_exc().encode(errors="replace").decode()
    except Exception:  # an error's own type may be hostile
        return "no traceback can be had of this error\n"
    if len(text) <= LONGEST_TRACE:
        return text
    return f"{text[: LONGEST_TRACE // 2]}\n… {len(text) - LONGEST_TRACE} characters …\n{text[-LONGEST_TRACE // 2 :]}"


def _one_line(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the model's code ended the process ({described(error)})"
    if isinstance(error, KeyboardInterrupt):
        return f"the model's code raised {described(error)}"
    return (of_system(error) if isinstance(error, OSError) else None) or described(error)
