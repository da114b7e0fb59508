"""Which function a line of a source file is in. The file is read as text; nothing of it runs."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from hwprof.run.regular_files import read_regular

LARGEST_BYTES: Final = 4 << 20

Span = tuple[int, int, str]
"""First and last line, and the function's name with those around it: ``Conv.forward``."""


def functions(file: Path) -> list[Span]:
    """Of a source file, the outer ones first; none where it cannot be read."""
    try:
        tree = ast.parse(read_regular(file, LARGEST_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[Span] = []
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, around = todo.pop()
        for child in ast.iter_child_nodes(node):
            name = around
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{around}.{child.name}" if around else child.name
                if not isinstance(child, ast.ClassDef):
                    found.append((child.lineno, child.end_lineno or child.lineno, name))
            todo.append((child, name))
    return sorted(found, key=lambda span: (span[0], -span[1]))


def function_at(spans: list[Span], line: int) -> str | None:
    """The innermost one that the line is in; None: in none."""
    inside = [span for span in spans if span[0] <= line <= span[1]]
    return max(inside, key=lambda span: span[0])[2] if inside else None
