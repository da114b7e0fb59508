"""The columns of the CSV files, as hwprof/report/csv declares them; what they mean say the comments of the document's
fields."""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache

import msgspec

from hwprof.data_files import read_toml
from hwprof.hardware.metrics import csv_unit, facts
from hwprof.report import sections
from hwprof.report.csv.table import Field, File


class _Units(msgspec.Struct, forbid_unknown_fields=True):
    by_ending: dict[str, str]


def files() -> list[File]:
    """All of them, in the order of the report's sections."""
    return [file for section in sections.of_room("csv") for file in section.csv.FILES]


def index() -> str:
    """A line a file: what a row of it is."""
    rows = [f"| [`{file.name}`](csv.md#{_anchor(file)}) | {file.row} |" for file in files()]
    return "\n".join(["| file | a row is |", "| --- | --- |", *rows])


def columns() -> str:
    """A table a file."""
    parts = []
    for file in files():
        rows = [_row(header, unit_of(header), _meaning(what)) for header, what in file.columns.items()]
        parts += [f"### `{file.name}`", *_says(file), _table(rows)]
    return "\n\n".join(parts)


def metrics() -> str:
    """The column of each metric, where neither ``modelled`` nor ``instrumented`` stands in it."""
    return _table(
        _row(f"{one.name}_{csv_unit(one.unit)}", one.unit, one.meaning or one.title) for one in facts().values()
    )


def unit_of(header: str) -> str:
    """The unit that a header ends with; nothing of a count, or a text."""
    name = header.removesuffix("_modelled")
    return next((unit for ending, unit in _units().by_ending.items() if name.endswith(ending)), "")


@cache
def _units() -> _Units:
    return read_toml(__name__, "csv_units.toml", _Units)


def _anchor(file: File) -> str:
    return file.name.lower().replace(".", "")


def _says(file: File) -> Iterator[str]:
    """What the structs say of themselves that its columns come from, but those that another one of them extends."""
    yield f"A row is {file.row}."
    kinds = dict.fromkeys(what.kind for what in file.columns.values() if isinstance(what, Field))
    for kind in kinds:
        if not any(kind is not other and issubclass(other, kind) for other in kinds):
            yield " ".join((inspect.getdoc(kind) or "").replace("``", "`").split())


def _meaning(what: Field | str) -> str:
    if isinstance(what, str):
        return what
    return _comments(_defining(what)).get(what.name, "")


def _defining(field: Field) -> type[msgspec.Struct]:
    """The struct that names the field, which its others have from it."""
    return next(kind for kind in field.kind.__mro__ if field.name in vars(kind).get("__annotations__", {}))


@cache
def _comments(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What stands behind each field of a struct, and in the lines of comment below it."""
    source = textwrap.dedent(inspect.getsource(kind))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    (defined,) = ast.parse(source).body
    assert isinstance(defined, ast.ClassDef)
    found = {}
    for node in defined.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.end_lineno or node.lineno
            lines = [comments[line] for line in range(node.lineno, last + 1) if line in comments]
            while (last := last + 1) in comments and source.splitlines()[last - 1].lstrip().startswith("#"):
                lines.append(comments[last])
            found[node.target.id] = " ".join(lines)
    return found


def _table(rows: Iterable[str]) -> str:
    return "\n".join(["| column | unit | |", "| --- | --- | --- |", *rows])


def _row(header: str, unit: str, meaning: str) -> str:
    return f"| `{header}` | {_cell(unit)} | {_cell(meaning)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")
