"""What is told of remedies that were tried: by their names, whatever titles and lines a run's files give them.

Somebody else's run may hold anything; what it says is never shown as something to type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from hwprof.printable import one_line
from hwprof.remedies.catalogue import is_exact, lines, place_of, title_of
from hwprof.run.trials import Trial, Trials

EXPORT: Final = "export "


def told(found: Trials) -> Trials:
    """With titles and lines to adopt from the catalogue, and each reason as one line of bounded length."""
    rows = [_row(one) for one in found.rows]
    ended = one_line(found.ended) if found.ended is not None else None
    return msgspec.structs.replace(found, rows=rows, ended=ended)


def to_adopt(names: Sequence[str], find: Callable[[str], Path | None] | None = None) -> list[str]:
    """The environment first, then lines of Python as they must follow one another; nothing where one of the names is no
    remedy's. ``find``: as ``catalogue.ready`` takes it."""
    by_name = [lines(name, find) for name in sorted(names, key=place_of)]
    if not all(by_name):
        return []
    return sorted((line for some in by_name for line in some), key=lambda line: not line.startswith(EXPORT))


def _row(one: Trial) -> Trial:
    return msgspec.structs.replace(
        one,
        titles=[one_line(title_of(name)) for name in one.remedies],
        adopt=to_adopt(one.remedies),
        exact=one.exact and all(is_exact(name) for name in one.remedies),
        reason=one_line(one.reason) if one.reason is not None else None,
        earlier=one_line(one.earlier) if one.earlier is not None else None,
    )
