"""All cases of a bench that are not done, one after the other: this machine is each one's alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from hwprof.bench.process import carry_out
from hwprof.bench.result import Result
from hwprof.bench.store import Store
from hwprof.errors import cannot_write

MINUTES_FROM_S: Final = 100


class Progress(Protocol):
    """Who shows how far it is."""

    def phase(self, pass_name: str, text: str, total: int | None) -> None:
        """What is done now."""
        ...

    def reached(self, done: int, total: int) -> None:
        """Of all cases."""
        ...


def carry_out_all(store: Store, progress: Progress, told: Callable[[Result], None]) -> None:
    """Each result is kept, and ``told``, when it is there; what is left where something ends it (Ctrl-C) is done the
    next time. Raises ``HwprofError`` where nothing can be written."""
    left = store.left()
    total = len(store.plan.cases)
    progress.phase("bench", "measuring", total)
    progress.reached(total - len(left), total)
    began_s = time.monotonic()
    for number, case in enumerate(left):
        passed_s = time.monotonic() - began_s
        progress.phase("bench", f"{case.label}{_left(passed_s, number, len(left))}", total)
        progress.reached(total - len(left) + number, total)
        try:
            result = carry_out(case, store.begin(case), store.plan.settings)
            store.keep(result)
        except OSError as error:
            raise cannot_write(store.path, error) from error
        told(result)


def _left(passed_s: float, done: int, of: int) -> str:
    """How long the others take, if they take as long as those that are done."""
    if not done:
        return ""
    seconds = passed_s / done * (of - done)
    return f" (about {seconds:.0f} s left)" if seconds < MINUTES_FROM_S else f" (about {seconds / 60:.0f} min left)"
