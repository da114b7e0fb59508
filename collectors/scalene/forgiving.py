"""Scalene beside code whose files are not what it expects: without this, one of them costs its whole profile.

Code may name any file as its own (``compile(text, name, "exec")``, as templates and notebooks do).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from hwprof.printable import is_text
from hwprof.run.regular_files import may_exist, read_regular

REGIONS: Final = ("find_regions", "find_outermost_loop", "find_functions")
"""Each gives for every line of a source where the region around it begins and ends."""

NATIVE: Final = "get_native_imported_modules"

NO_SOURCE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
"""``ast.parse`` of what is no Python."""

LARGEST_BYTES: Final = 16 << 20
"""Of a source."""


def forgive_names(profiler: ModuleType) -> None:
    """Names that are no text make no path, and Scalene asks of each in the middle of the model's code; files that are
    no text, or a pipe, it would read at the end."""
    known: Any = profiler.Scalene
    asked: Callable[[Any, str], bool] = known._should_trace
    known._should_trace = staticmethod(lambda name, function: _may_be_source(str(name)) and asked(name, function))


@cache
def _may_be_source(name: str) -> bool:
    if not is_text(name) or "\0" in name:
        return False
    try:
        if may_exist(Path(name)):
            read_regular(Path(name), LARGEST_BYTES).decode()
    except (OSError, ValueError):
        return False
    return True


def forgive_sources() -> None:
    """When Scalene writes its file it reads the sources of what it met, and imports whatever they name in an
    ``import``, to see whether that is native: that runs code which nobody asked for, and fails where a module is broken
    (torchvision without its operators)."""
    analysis: Any = getattr(sys.modules.get("scalene.scalene_analysis"), "ScaleneAnalysis", None)
    if analysis is None:
        return
    analysis.is_native = staticmethod(_is_native)
    for name in REGIONS:
        setattr(analysis, name, staticmethod(_or_each_line(getattr(analysis, name))))
    setattr(analysis, NATIVE, staticmethod(_or_nothing(getattr(analysis, NATIVE))))


def _is_native(module: str) -> bool:
    """Of what is loaded, whether it is an extension."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return isinstance(file, str) and file.endswith(".so")


def _or_each_line(found: Callable[[str], dict[int, tuple[int, int]]]) -> Callable[[str], dict[int, tuple[int, int]]]:
    def regions(source: str) -> dict[int, tuple[int, int]]:
        try:
            return found(source)
        except NO_SOURCE:
            return {line: (line, line) for line in range(1, len(source.splitlines()) + 2)}

    return regions


def _or_nothing(found: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def modules(source: str) -> list[str]:
        try:
            return found(source)
        except NO_SOURCE:
            return []

    return modules
