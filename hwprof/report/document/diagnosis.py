"""What ``hwprof doctor`` found, as a document and as JSON."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hwprof import __version__
from hwprof.run.manifest import Machine, Tool
from hwprof.run.notes import Note

SCHEMA_VERSION: Final = 2


class Finding(msgspec.Struct, kw_only=True):
    """One collector or requirement."""

    name: str
    kind: str  # "collector", "package"
    what_for: str
    available: bool
    version: str | None = None
    passes: list[str] = []
    reason: str | None = None
    remedy: str | None = None
    notes: list[Note] = []
    detail: dict[str, Any] = {}
    tools: list[Tool] = []  # programs and libraries that a collector would have at work


class Diagnosis(msgspec.Struct, kw_only=True):
    """Everything that ``hwprof doctor`` knows."""

    schema_version: int = SCHEMA_VERSION
    hwprof_version: str = __version__
    machine: Machine
    findings: list[Finding]


def as_json(diagnosis: Diagnosis) -> str:
    """The document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(diagnosis), indent=1).decode()
