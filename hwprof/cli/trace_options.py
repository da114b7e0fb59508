"""The option of the commands that write a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from hwprof.trace.limits import MOST

HELP: Final = (
    "As large as so many operators (64 bytes each): of longer passes the trace shows the first iterations, each of them"
    " whole. A layer with its counts is as large as ten. The tables have all; the UI opens some millions."
)


def trace_limit(default: int | None, further: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``further``: what else its help says."""
    kind = click.IntRange(1, MOST)
    return click.option(
        "--trace-limit", type=kind, default=default, show_default=True, metavar="SLICES", help=HELP + further
    )
