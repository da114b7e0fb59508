"""What ``hwprof doctor`` found, as a document, on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hwprof import __version__
from hwprof.run.manifest import Machine

if TYPE_CHECKING:
    from hwprof.session.registry import Surveyed
    from hwprof.session.requirements import Requirement

SCHEMA_VERSION: Final = 1


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
    notes: list[str] = []
    detail: dict[str, Any] = {}


class Diagnosis(msgspec.Struct, kw_only=True):
    """Everything that ``hwprof doctor`` knows."""

    schema_version: int = SCHEMA_VERSION
    hwprof_version: str = __version__
    machine: Machine
    findings: list[Finding]


def diagnose(machine: Machine, surveyed: Sequence[Surveyed], required: Sequence[Requirement]) -> Diagnosis:
    """The document."""
    collectors = [
        Finding(
            name=found.name,
            kind="collector",
            what_for=found.collector.summary if found.collector else "",
            available=found.availability.ok,
            passes=sorted(found.collector.passes) if found.collector else [],
            reason=found.availability.reason,
            remedy=found.availability.remedy,
            notes=list(found.availability.notes),
            detail=found.availability.detail,
        )
        for found in surveyed
    ]
    packages = [
        Finding(
            name=requirement.name,
            kind="package",
            what_for=requirement.serves,
            available=requirement.found is not None,
            version=requirement.found,
            reason=requirement.reason,
            remedy=requirement.remedy,
        )
        for requirement in required
    ]
    return Diagnosis(machine=machine, findings=collectors + packages)


def as_json(diagnosis: Diagnosis) -> str:
    """The document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(diagnosis), indent=1).decode()


def show(diagnosis: Diagnosis) -> None:
    """Prints it: one line each, and below it why not, and the command that would change it."""
    console = Console()
    machine = diagnosis.machine
    console.print(f"[bold]{machine.processor}[/], {machine.logical_processors} processors, {machine.kernel}")
    for kind, title in (("collector", "Collectors"), ("package", "What commands need")):
        console.print(f"\n[bold]{title}[/]")
        for finding in diagnosis.findings:
            if finding.kind == kind:
                _show_finding(console, finding)


def _show_finding(console: Console, finding: Finding) -> None:
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    grid.add_column(width=3)
    grid.add_column(width=16)
    grid.add_column()
    mark = Text("yes", "green") if finding.available else Text("no", "bold red")
    what = finding.what_for + (f" ({finding.version})" if finding.version else "")
    grid.add_row(mark, Text(finding.name, "bold"), what)
    for label, text in (("", finding.reason), ("try:", finding.remedy), *(("", note) for note in finding.notes)):
        if text:
            grid.add_row("", Text(label, "dim", justify="right"), Text(text))
    console.print(Padding(grid, (0, 0, 0, 1)))
