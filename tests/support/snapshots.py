"""Texts that are kept whole, one a section and width: HWPROF_UPDATE_SNAPSHOTS=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

SNAPSHOTS = Path(__file__).parents[1] / "unit/report/snapshots"
UPDATE = bool(os.environ.get("HWPROF_UPDATE_SNAPSHOTS"))


def section(lines: list[str], title: str) -> list[str]:
    """The lines of a section's table and notes."""
    start = next(number for number, line in enumerate(lines) if line.startswith(title))
    titles = ("Stages", "Hot", "Top-down", "FLOPs:", "Time per", "Top operators", "Energy", "DRAM traffic")
    others = [number for number, line in enumerate(lines) if number > start and line.startswith(titles)]
    return lines[start + 1 : min(others, default=len(lines))]
