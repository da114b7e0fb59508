"""Processes of hwprof's own: how they are started. Imports nothing that a measured process should not have."""

from __future__ import annotations

import sys


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a module of hwprof's in a fresh interpreter. The current folder is not where it looks for
    modules: a ``types.py`` or ``queue.py`` that happens to lie there would run in the place of Python's own."""
    return [sys.executable, "-P", "-m", module, *arguments]
