"""Which file of docs/ holds which generated part.

A page is written by hand, but for what stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. Files with
nothing by hand in them (the JSON schemas) are generated whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from scripts.docs import commands, csv_columns, schemas, tables

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"

PART: Final = re.compile(r"(<!-- generated: (?P<name>[^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SOURCE: Final = "source of "
"""A part of that name is the file that follows, in a block: ``source of examples/…/collector.py``."""

LANGUAGES: Final = {".py": "python", ".toml": "toml"}

PARTS: Final[Mapping[str, Callable[[], str]]] = {
    **{f"options of {name}": commands.options_of(name) for name in commands.names()},
    "commands": commands.index,
    "csv files": csv_columns.index,
    "csv columns": csv_columns.columns,
    "metric columns": csv_columns.metrics,
    "columns of layer times": tables.layer_times,
    "tables": tables.all_tables,
    "versions": schemas.versions,
}

FILES: Final[Mapping[str, Callable[[], str]]] = {
    "schemas/report.schema.json": schemas.report,
    "schemas/run.schema.json": schemas.manifest,
    "schemas/bench.schema.json": schemas.bench,
    "glossary.md": commands.glossary,
}


def filled(text: str) -> str:
    """A page with its generated parts made anew; raises ``KeyError`` for a part that nobody makes."""
    return PART.sub(lambda part: f"{part[1]}\n{_made(part['name']).strip()}\n\n{part[3]}", text)


def _made(name: str) -> str:
    if name.startswith(SOURCE):
        file = ROOT / name.removeprefix(SOURCE)
        return f"```{LANGUAGES[file.suffix]}\n{file.read_text(encoding='utf-8').rstrip()}\n```"
    return PARTS[name]()


def parts_in(text: str) -> list[str]:
    """The names of a page's generated parts."""
    return [part["name"] for part in PART.finditer(text)]


def stale() -> dict[Path, str]:
    """The files that no longer say what the code does, with what they should."""
    wanted = {DOCS / name: make() for name, make in FILES.items()}
    by_hand = [path for path in sorted(DOCS.rglob("*.md")) if path not in wanted]
    wanted |= {path: filled(path.read_text(encoding="utf-8")) for path in by_hand}
    return {
        path: text for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    }
