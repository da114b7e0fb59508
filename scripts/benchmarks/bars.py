"""The bars of the benchmarks: what is declared in ``bars.toml``, and which figures of their pages reach it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = Path(__file__).with_name("bars.toml")
_NUMBER: Final = re.compile(r"[+\-−]?\d[\d,]*(?:\.\d+)?")


class Bar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure and its bound: ``at_most`` or ``at_least``."""

    name: str
    row: tuple[str, ...]
    """How the row of the page begins; the last of them may be the begin of a cell."""
    column: str
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(f"{self.name}: a bar is either at_most or at_least")

    def is_met(self, figure: float) -> bool:
        """Whether the figure reaches the bar."""
        return figure <= self.at_most if self.at_most is not None else figure >= (self.at_least or 0.0)

    def text(self) -> str:
        """``≤ 20 s``"""
        sign, bound = ("≤", self.at_most) if self.at_most is not None else ("≥", self.at_least)
        return f"{sign} {bound:g} {self.unit}"


class Benchmark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A module of ``scripts.benchmarks`` and its bars."""

    bars: tuple[Bar, ...]
    quick: tuple[str, ...] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What a bar came to; ``figure`` is None where the page does not have it."""

    bar: Bar
    figure: float | None

    @property
    def verdict(self) -> str:
        """``met``, ``short`` or ``missing``."""
        if self.figure is None:
            return "missing"
        return "met" if self.bar.is_met(self.figure) else "short"


def declared(file: Path = FILE) -> dict[str, Benchmark]:
    """The benchmarks with bars by name. Raises ``msgspec.ValidationError`` on a file that says something else."""
    return msgspec.toml.decode(file.read_bytes(), type=dict[str, Benchmark])


def evaluate(bars: Sequence[Bar], page: str) -> list[Outcome]:
    """Each bar's figure in a page of Markdown tables."""
    rows = _rows(page)
    return [Outcome(bar, _figure(bar, rows)) for bar in bars]


def _figure(bar: Bar, rows: list[dict[str, str]]) -> float | None:
    *exact, last = bar.row
    for row in rows:
        cells = list(row.values())
        named = cells[: len(exact)] == exact and len(cells) > len(exact) and bar.column in row
        if named and (cells[len(exact)] == last or (last.endswith(" ") and cells[len(exact)].startswith(last))):
            found = _NUMBER.search(row[bar.column])
            return float(found[0].replace(",", "").replace("−", "-")) if found else None
    return None


def _rows(page: str) -> list[dict[str, str]]:
    """The rows of all tables, each by column."""
    rows: list[dict[str, str]] = []
    header: list[str] = []
    for line in page.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not header:
            header = cells
        elif not all(set(cell) <= {"-", "|", " "} for cell in cells):
            rows.append(dict(zip(header, cells, strict=False)))
    return rows
