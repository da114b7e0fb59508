"""How many threads the workload may be asked to have: by ``--threads``, or by ``threads=N``, a variant or a remedy."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from hwprof.errors import UsageError
from hwprof.remedies import catalogue

A_PROCESSOR: Final = 4
MOST: Final = 1024
"""With --oversubscribe: a team of more may take all the processes that a machine has room for."""

OPTION: Final = "--threads "
NAME: Final = f"{catalogue.THREADS}="


def check_threads(threads: int, told: str = OPTION, *, oversubscribe: bool | None = None) -> None:
    """Raises ``UsageError`` for a number that this machine has no use for. ``told``: how the number is typed;
    ``oversubscribe``: whether the user wants it all the same, None: the command has no such option."""
    usual = A_PROCESSOR * (os.cpu_count() or 1)
    most = max(usual, MOST) if oversubscribe else usual
    if threads <= most:
        return
    why = "" if oversubscribe else f", {A_PROCESSOR} a processor"
    may = oversubscribe is False and threads <= MOST
    remedy = "--oversubscribe to have them all the same" if may else f"{told}{most}"
    raise UsageError(f"{told}{threads}: at most {most} here{why}", remedy)


def check_names(names: Iterable[str], *, oversubscribe: bool | None = None) -> None:
    """The same for variants or remedies."""
    for name in names:
        if (threads := catalogue.threads_of(name)) is not None:
            check_threads(threads, NAME, oversubscribe=oversubscribe)


def check_told_once(threads: int | None, names: Iterable[str]) -> None:
    """Raises ``UsageError`` for a number of threads in both of them, of which one would be heeded."""
    if threads is not None and any(catalogue.threads_of(name) is not None for name in names):
        raise UsageError("threads both as a variant and as --threads", f"--threads N, or the variant {NAME}N")
