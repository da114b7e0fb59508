"""Texts that are kept whole, one a section and width. To write them anew:

HWPROF_UPDATE_SNAPSHOTS=1 python -m pytest tests/unit/report
"""

from __future__ import annotations

import os
from pathlib import Path

SNAPSHOTS = Path(__file__).parents[1] / "unit/report/snapshots"
UPDATE = bool(os.environ.get("HWPROF_UPDATE_SNAPSHOTS"))


def assert_snapshot(name: str, text: str) -> None:
    """The text is the one kept under that name; written anew where the environment asks for it: read the difference
    (``git diff tests/unit/report/snapshots``) before committing it."""
    snapshot = SNAPSHOTS / f"{name}.txt"
    if UPDATE:
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")


def section(lines: list[str], title: str) -> list[str]:
    """The lines of a section's table and notes."""
    start = next(number for number, line in enumerate(lines) if line.startswith(title))
    titles = ("Stages", "Hot", "Top-down", "FLOPs:", "Time per", "Top operators", "Energy", "DRAM traffic", "Where")
    others = [number for number, line in enumerate(lines) if number > start and line.startswith(titles)]
    return lines[start + 1 : min(others, default=len(lines))]
