"""Rows of the table ``python_calls`` from cProfile's entries."""

from __future__ import annotations

import cProfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import polars as pl

BUILTIN: Final = "~"
"""The file of functions that are no Python, as pstats has it."""


class Place(NamedTuple):
    """A function, and whether code of the profiler's own called it: told apart for builtins alone, for these have no
    file that says whose they are."""

    function: str
    file: str
    line: int
    by_profiler: bool


class Counted(NamedTuple):
    """Calls and times (ns) of a function."""

    calls: int = 0
    primitive_calls: int = 0
    self_ns: int = 0
    cumulative_ns: int = 0

    def less(self, other: Counted) -> Counted:
        """Without those."""
        return Counted(*(mine - its for mine, its in zip(self, other, strict=True)))

    def plus(self, other: Counted) -> Counted:
        """With those."""
        return Counted(*(mine + its for mine, its in zip(self, other, strict=True)))


def python_calls(profiles: Mapping[str, cProfile.Profile], profiler_paths: Sequence[str]) -> pl.DataFrame:
    """The rows of ``python_calls``, without ``pass``, of the profiles by stage."""
    import polars as pl

    rows = [
        (stage, *place, *counted)
        for stage, profile in profiles.items()
        for place, counted in functions(profile.getstats(), profiler_paths).items()
    ]
    columns = ["stage", *Place._fields, *Counted._fields]
    types = {"stage": pl.String, "function": pl.String, "file": pl.String, "line": pl.Int32, "by_profiler": pl.Boolean}
    return pl.DataFrame(rows, schema={name: types.get(name, pl.Int64) for name in columns}, orient="row")


def functions(entries: Iterable[Any], profiler_paths: Sequence[str]) -> dict[Place, Counted]:
    """By place; ``entries`` are ``Profile.getstats``'s. Of a builtin what the profiler's code called has a place of its
    own."""
    found: defaultdict[Place, Counted] = defaultdict(Counted)
    for entry in entries:
        place = _place(entry.code)
        found[place] = found[place].plus(_counted(entry))
        if isinstance(entry.code, str) or not _lies_in(entry.code.co_filename, profiler_paths):
            continue
        for called in entry.calls or ():
            if isinstance(called.code, str):
                place = _place(called.code)._replace(by_profiler=True)
                found[place] = found[place].plus(_counted(called))
    for place in [one for one in found if one.by_profiler]:
        others = place._replace(by_profiler=False)
        found[others] = found[others].less(found[place])
        if not found[others].calls:
            del found[others]
    return dict(found)


def _counted(entry: Any) -> Counted:
    return Counted(
        entry.callcount,
        entry.callcount - entry.reccallcount,
        round(entry.inlinetime * 1e9),
        round(entry.totaltime * 1e9),
    )


def _place(code: CodeType | str) -> Place:
    if isinstance(code, str):
        return Place(_as_text(code), BUILTIN, 0, False)
    return Place(_as_text(code.co_qualname), _as_text(code.co_filename), code.co_firstlineno, False)


def _lies_in(file: str, places: Sequence[str]) -> bool:
    return any(file == place or file.startswith(f"{place}/") for place in places)


def _as_text(text: str) -> str:
    """Names may hold halves of characters, which no table takes."""
    return text.encode(errors="replace").decode()
