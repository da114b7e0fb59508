"""Which file of docs/ holds which generated part.

A page is written by hand, but for what stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. Files with
nothing by hand in them (the JSON schemas) are generated whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from scripts.docs import commands, schemas, tables

DOCS: Final = Path(__file__).parents[2] / "docs"

PART: Final = re.compile(r"(<!-- generated: (?P<name>[\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)

PARTS: Final[Mapping[str, Callable[[], str]]] = {
    **{f"options of {name}": commands.options_of(name) for name in commands.names()},
    "commands": commands.index,
    "tables": tables.all_tables,
}

FILES: Final[Mapping[str, Callable[[], str]]] = {
    "schemas/report.schema.json": schemas.report,
    "schemas/run.schema.json": schemas.manifest,
}


def filled(text: str) -> str:
    """A page with its generated parts made anew; raises ``KeyError`` for a part that nobody makes."""
    return PART.sub(lambda part: f"{part[1]}\n{PARTS[part['name']]().strip()}\n\n{part[3]}", text)


def parts_in(text: str) -> list[str]:
    """The names of a page's generated parts."""
    return [part["name"] for part in PART.finditer(text)]


def stale() -> dict[Path, str]:
    """The files that no longer say what the code does, with what they should."""
    wanted = {path: filled(path.read_text(encoding="utf-8")) for path in sorted(DOCS.rglob("*.md"))}
    wanted |= {DOCS / name: make() for name, make in FILES.items()}
    return {
        path: text for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    }
