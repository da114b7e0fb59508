"""No test imports another test: what tests share stands in ``tests/support``."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def imported_tests(source: str) -> list[str]:
    """The test modules that a file's source imports, at its top or inside a function."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found += [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name for name in found if name.rpartition(".")[2].startswith(("test_", "conftest"))]


@pytest.mark.parametrize(
    "source",
    [
        "from tests.unit.report.test_terminal import section",
        "from tests.unit.report import test_terminal",
        "def later():\n    import tests.unit.report.test_terminal",
        "from .conftest import machine",
    ],
)
def test_an_import_of_a_test_is_found(source: str) -> None:
    assert len(imported_tests(source)) == 1


def test_no_test_imports_another() -> None:
    importing = {
        str(path.relative_to(TESTS)): found
        for path in sorted(TESTS.rglob("*.py"))
        if (found := imported_tests(path.read_text(encoding="utf-8")))
    }

    assert importing == {}
