"""Counts in columns: what is the same for all owners is said once."""

from __future__ import annotations

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

    provenance: str  # measured, instrumented, simulated or modelled
    iterations: int  # that most owners have it in
    iterations_of: dict[str, int] = {}  # of the others
    value: Values = []  # over all threads
    mad: Values = []  # median absolute deviation; of one iteration there is none
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

    events = {event: _column(rows) for event, rows in summary.by_owners(counts, owners).items()}
    return Counters(of=list(owners), events=events)


def _column(rows: pl.DataFrame) -> Column:
    """``rows``: one an owner, null of those that were not counted."""
    import polars as pl

    def column(name: str) -> Values:
        return rows[name].to_list() if rows[name].count() else []

    often = rows["iterations"].drop_nulls().value_counts()
    most = often.sort("count", "iterations")["iterations"][-1]
    others = rows.filter(pl.col("iterations") != most)
    shares = rows["running_share"]
    return Column(
        provenance=rows["provenance"].drop_nulls()[0],
        iterations=most,
        iterations_of=dict(others.select("owner", "iterations").iter_rows()),
        running_share=column("running_share") if (shares.drop_nulls() != 1.0).any() else [],
        **{name: column(name) for name in PARTS},
    )
