"""From when to when threads were there: from their creation to their end, as the kernel recorded them, and else from
their first record to their last."""

from __future__ import annotations

from typing import Final

import polars as pl

FAR: Final = 2**62
"""Of a time: before, or after, all that was measured."""


def lives(
    samples: pl.DataFrame, switches: pl.DataFrame, lifetimes: pl.DataFrame, calling_tid: int | None
) -> pl.DataFrame:
    """``tid``, ``begin_ns``, ``end_ns`` of every thread that has a record; all three tables are one pass's.

    A thread of which the table ``lifetimes`` has a row began and ended by it, with ±``FAR`` where it was there before
    or after. Of another one nothing is known before its first record, and nothing after its last: the time to a next
    sample that did not come, or for ever where it left its processor last of all. The calling thread is there always.
    """
    records = pl.concat(
        [
            samples.select(
                "tid",
                first_ns=pl.col("time_ns") - pl.col("cpu_ns"),
                last_ns="time_ns",
                until_ns=pl.col("time_ns") + pl.col("cpu_ns"),
            ),
            switches.select(
                "tid",
                first_ns=pl.coalesce("out_ns", "in_ns"),
                last_ns=pl.coalesce("in_ns", "out_ns"),
                until_ns=pl.col("in_ns").fill_null(FAR),
            ),
        ]
    )
    known = records.group_by("tid").agg(
        pl.col("first_ns").min(), until_ns=pl.col("until_ns").sort_by("last_ns", "until_ns").last()
    )
    watched = lifetimes.select("tid", "born_ns", "ended_ns", watched=True)
    calls = pl.col("tid").eq_missing(pl.lit(calling_tid, pl.Int32))
    joined = known.join(watched, on="tid", how="left")
    return joined.select(
        "tid",
        begin_ns=pl.when(calls)
        .then(-FAR)
        .when("watched")
        .then(pl.col("born_ns").fill_null(-FAR))
        .otherwise("first_ns"),
        end_ns=pl.when(calls).then(FAR).when("watched").then(pl.col("ended_ns").fill_null(FAR)).otherwise("until_ns"),
    ).sort("tid")
