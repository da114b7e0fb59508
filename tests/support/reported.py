"""What a collector reports, as tests compare it: notes as a reader sees them, details as they stand in JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hwprof.run.details import Detail, as_json
from hwprof.run.notes import Note


def texts(notes: Iterable[Note]) -> list[str]:
    """The notes as they are printed."""
    return [str(note) for note in notes]


def fields(detail: Detail | None) -> dict[str, Any]:
    """The detail as the manifest keeps it, without its kind."""
    found = as_json(detail)
    found.pop("kind", None)
    return found
