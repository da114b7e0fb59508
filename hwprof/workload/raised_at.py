"""Where in a user's own code an exception came from, and where something stands."""

from __future__ import annotations

import sysconfig
import traceback
import types
from pathlib import Path
from typing import Any, Final

import torch

import hwprof

INSTALLED: Final = ("site-packages", "dist-packages")
"""Folders of packages, wherever an environment lies."""

RAISES: Final = ("raise", "assert")
"""How a line begins that raises an exception itself."""

NOT_THE_USERS: Final = (
    f"{Path(hwprof.__file__).parent}/",
    f"{Path(torch.__file__).parent}/",  # which may be built in its sources
    *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")),
)


def raised_at(error: BaseException) -> str | None:
    """``net.py:12``, the innermost line that is the user's; where none is, the innermost one that is not hwprof's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is(frame, NOT_THE_USERS[:1])]
    users = [frame for frame in frames if not _is_installed(frame)]
    if not frames:
        return None
    frame = (users or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def raised_by_users_code(error: BaseException) -> str | None:
    """``net.py:12``, where a statement of the user's own raised it, and no library that was called."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or _is_installed(frames[-1]) or not (frames[-1].line or "").startswith(RAISES):
        return None
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"


def defined_at(thing: Any) -> str | None:
    """``net.py:12``, where a function begins; None of what is none."""
    if not isinstance(thing, types.FunctionType):
        return None
    return f"{Path(thing.__code__.co_filename).name}:{thing.__code__.co_firstlineno}"


def _is_installed(frame: traceback.FrameSummary) -> bool:
    """Also what has no file: ``<frozen importlib._bootstrap>``."""
    path = Path(frame.filename)
    return frame.filename.startswith("<") or any(one in path.parts for one in INSTALLED) or _is(frame, NOT_THE_USERS)


def _is(frame: traceback.FrameSummary, folders: tuple[str, ...]) -> bool:
    return frame.filename.startswith(folders)
