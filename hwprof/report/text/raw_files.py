"""Where the tools' own files lie, in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from hwprof.printable import printable
from hwprof.report.text import figures

MOST: Final = 3
"""Files that are named."""


def where(files: Sequence[str]) -> list[str]:
    """One note, or none: ``raw data: raw/trace/pyspy/trace.json, in the run's folder``."""
    if not files:
        return []
    folder = PurePosixPath(files[0]).parent
    beside = [file.removeprefix(f"{folder}/") for file in files[1:]]
    return [f"raw data: {printable(figures.some([files[0], *beside], MOST))}, in the run's folder"]
