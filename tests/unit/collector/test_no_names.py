"""Who plans, runs and analyses knows collectors by what they declare, and none by its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hwprof
from hwprof.collector import registry

ROOMS = ("cli", "session", "analysis")
FILES = sorted(file for room in ROOMS for file in (Path(hwprof.__file__).parent / room).glob("*.py"))
OTHER_MEANINGS = {"instrumented", "memory"}
"""A provenance and a section of the report are called like this, too: here only the words of the command line count."""


def strings(file: Path) -> set[str]:
    return {
        node.value
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_no_collector_is_known_by_name(file: Path) -> None:
    names = set(registry.names())
    if file.parent.name == "analysis":
        names -= OTHER_MEANINGS
    assert not names & strings(file)


def test_no_option_of_a_collector_stands_in_the_command() -> None:
    options = {option.name for declared in registry.declarations() for option in declared.options}
    assert options and not options & strings(next(file for file in FILES if file.name == "collect.py"))
