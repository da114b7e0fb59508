"""Names of arguments that SQL takes as they are: each is a column's name without quotation marks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_FOREIGN: Final = re.compile(r"[^0-9A-Za-z_]+")


class ArgumentNames:
    """The argument's name of each event or metric of a pass: ``context_switches`` of ``context-switches``."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        """``reserved`` are names that others have already."""
        self._taken = set(reserved)
        self._given: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The same one each time; no two names share one, in capitals or not: SQL does not tell these apart."""
        given = self._given.get(name)
        if given is None:
            plain = identifier(name)
            numbered = (f"{plain}_{number}" for number in range(2, len(self._taken) + 3))
            given = next(free for free in (plain, *numbered) if free.lower() not in self._taken)
            self._given[name] = given
            self._taken.add(given.lower())
        return given


def identifier(name: str) -> str:
    """``name`` in letters, digits and underscores, without a digit at its beginning."""
    plain = _FOREIGN.sub("_", name).strip("_") or "_"
    return f"_{plain}" if plain[0].isdigit() else plain
