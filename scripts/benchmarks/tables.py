"""The Markdown table that a benchmark leaves in results/, with the machine and versions that it was made with."""

from __future__ import annotations

import platform
import shlex
import sys
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hwprof.hardware import machine

PACKAGES = ("hwprof", "torch", "ultralytics", "numpy", "polars", "perfetto", "orjson")


@dataclass(frozen=True)
class Part:
    """Another table of the same page."""

    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Table:
    """What was measured; ``further`` tables follow the first."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str
    further: tuple[Part, ...] = ()


def write(table: Table, target: Path) -> None:
    """Writes the table as Markdown and prints it."""
    text = _markdown(table)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(text)


def _markdown(table: Table) -> str:
    described = machine.describe()
    where = (
        f"{described.processor}, {described.logical_processors} processors"
        f"{f', virtual machine ({described.hypervisor})' if described.hypervisor else ''}, {platform.platform()}"
    )
    lines = [f"# {table.title}", "", table.note.strip(), "", *_grid(table.columns, table.rows)]
    for part in table.further:
        lines += ["", f"## {part.title}", "", *_grid(part.columns, part.rows)]
    lines += ["", f"Made with `{made_with()}` on {date.today().isoformat()}: {where}.", f"{_versions()}.", ""]
    return "\n".join(lines)


def _grid(columns: list[str], rows: list[list[str]]) -> list[str]:
    return [_row(columns), _row(["---"] * len(columns)), *map(_row, rows)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def made_with() -> str:
    """The one that runs, with its arguments."""
    running = sys.modules["__main__"].__spec__
    module = running.name.removesuffix(".__main__") if running is not None else Path(sys.argv[0]).stem
    return shlex.join(["python", "-m", module, *sys.argv[1:]])


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
