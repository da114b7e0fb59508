"""Counts in columns: what is the same for all owners is said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    import polars as pl

Values = list[float | None]
"""One for each of ``Counters.of``, null where it is not known; empty where none is."""

PARTS: Final = ("value", "mad", "main", "workers")
LISTS: Final = (*PARTS, "running_share")


class Column(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """An event in one iteration: medians over iterations. Where ``running_share`` is below 1 the kernel multiplexed the
    counter, and the values are scaled up by enabled / running time."""

    provenance: str
    iterations: int  # that most owners have it in
    iterations_of: dict[str, int] = {}  # of the others
    value: Values = []  # over all threads
    mad: Values = []  # of one iteration there is none
    main: Values = []  # the thread that called
    workers: Values = []  # all others
    running_share: Values = []  # empty: 1 for all


class Counters(msgspec.Struct, kw_only=True, frozen=True):
    """What was counted of a table's rows."""

    of: list[str]  # the rows in their order; after layers ``unattributed`` and the whole
    events: dict[str, Column]

    def column(self, event: str, part: str = "value") -> Sequence[float | None]:
        """One value an owner."""
        found: Values = getattr(self.events[event], part) if event in self.events else []
        return found or [None] * len(self.of)

    def values(self, event: str, part: str = "value") -> dict[str, float]:
        """By owner, where it is known."""
        pairs = zip(self.of, self.column(event, part), strict=True)
        return {owner: value for owner, value in pairs if value is not None}

    def narrowed(self, owners: Container[str]) -> Counters:
        """Of these owners alone."""
        kept = [number for number, owner in enumerate(self.of) if owner in owners]

        def of(column: Column) -> Column:
            parts = {name: [values[number] for number in kept] for name in LISTS if (values := getattr(column, name))}
            others = {owner: number for owner, number in column.iterations_of.items() if owner in owners}
            return msgspec.structs.replace(column, **parts, iterations_of=others)

        return Counters(
            of=[self.of[number] for number in kept], events={name: of(column) for name, column in self.events.items()}
        )


def counters(counts: pl.DataFrame, owners: Sequence[str]) -> Counters:
    """Those of ``owners``; ``counts`` as ``analysis.summary.counts`` has them."""
    from hwprof.analysis import summary

    place = {owner: number for number, owner in enumerate(owners)}
    events = {
        event: _column(rows, place)
        for event, rows in summary.by_event(counts).items()
        if not place.keys().isdisjoint(rows["owner"])
    }
    return Counters(of=list(owners), events=events)


def _column(rows: pl.DataFrame, place: dict[str, int]) -> Column:
    import polars as pl

    taken = rows.filter(pl.col("owner").is_in(list(place)))
    owners = taken["owner"].to_list()
    places = [place[owner] for owner in owners]

    def column(name: str) -> Values:
        if taken[name].null_count() == taken.height:
            return []
        values: Values = [None] * len(place)
        for number, value in zip(places, taken[name].to_list(), strict=True):
            values[number] = value
        return values

    of_each = dict(zip(owners, taken["iterations"].to_list(), strict=True))
    often = Counter(of_each.values())
    most = max(often, key=lambda number: (often[number], number))
    shares = column("running_share")
    return Column(
        provenance=rows["provenance"][0],
        iterations=most,
        iterations_of={owner: number for owner, number in of_each.items() if number != most},
        running_share=shares if any(share not in (None, 1.0) for share in shares) else [],
        **{name: column(name) for name in PARTS},
    )
