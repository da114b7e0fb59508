"""The tables of a run as hwprof/run/schema.py defines them: columns and types by the code, meanings by its comments."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

from hwprof.analysis import forward_times
from hwprof.run import schema


def all_tables() -> str:
    """Every table: a heading, what it holds, and its columns."""
    comments = _comments()
    parts = []
    for line, name, columns in _definitions():
        rows = [
            f"| `{column}` | {schema.TABLES[name][column]} | {_cell(comments.get(at, ''))} |" for at, column in columns
        ]
        head = [f"### `{name}.parquet`", "", _above(comments, line), "", "| column | type | |", "| --- | --- | --- |"]
        parts.append("\n".join([*head, *rows]))
    return "\n\n".join(parts)


def layer_times() -> str:
    """The columns that ``hwprof layers`` adds to those of the table ``layers``."""
    rows = [f"| `{name}` | {_cell(meaning)} |" for name, meaning in forward_times.COLUMNS.items()]
    return "\n".join(["| column | |", "| --- | --- |", *rows])


def _definitions() -> list[tuple[int, str, list[tuple[int, str]]]]:
    """Of each table its line, name, and columns with their lines."""
    for node in ast.walk(ast.parse(_source())):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "TABLES":
            assert isinstance(node.value, ast.Dict)
            return [
                (key.lineno, _text(key), [(column.lineno, _text(column)) for column in _keys(value)])
                for key, value in zip(node.value.keys, node.value.values, strict=True)
                if key is not None
            ]
    raise LookupError("hwprof/run/schema.py has no TABLES")


def _keys(call: ast.expr) -> list[ast.expr]:
    assert isinstance(call, ast.Call)
    columns = call.args[0]
    assert isinstance(columns, ast.Dict)
    return [key for key in columns.keys if key is not None]


def _text(node: ast.expr) -> str:
    value = ast.literal_eval(node)
    assert isinstance(value, str)
    return value


def _comments() -> dict[int, str]:
    """Each line's comment."""
    tokens = tokenize.generate_tokens(io.StringIO(_source()).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


def _above(comments: dict[int, str], line: int) -> str:
    """The comment that stands right above a line."""
    lines: list[str] = []
    while (line := line - 1) in comments:
        lines.insert(0, comments[line])
    return " ".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _source() -> str:
    return Path(schema.__file__).read_text(encoding="utf-8")
