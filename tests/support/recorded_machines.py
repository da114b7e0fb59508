"""Recorded /proc and /sys trees: one text file a machine, ``== path`` before each file's content."""

from __future__ import annotations

from pathlib import Path

TREES = Path(__file__).parents[1] / "fixtures/machines"


def plant(name: str, root: Path) -> Path:
    """Lays the tree out below ``root`` and returns it."""
    _, *files = ("\n" + (TREES / f"{name}.txt").read_text()).split("\n== ")
    for file in files:
        path, _, content = file.partition("\n")
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content.replace("\\0", "\0") + "\n")
    return root
