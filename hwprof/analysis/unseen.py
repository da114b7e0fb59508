"""Times of which neither switches nor samples tell what a thread did: it did not work, and nobody knows what it did.

By its switches a thread is on a processor from its coming back until its next switch-out. A thread that works is
sampled meanwhile; one that is not, for many sampling periods, has left its processor without a record of that: records
get lost, and runs of older versions lack the switch-outs of threads that slept before they were watched.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hwprof.analysis.lifetimes import FAR
from hwprof.analysis.states import UNKNOWN

PERIODS: Final = 20
"""Of sampling, without a sample: a thread at work has one in each, and fewest where it is switched often."""

LEAST_NS: Final = 20_000_000
"""The hypervisor's pauses, and the kernel's throttling of samples, are shorter than that."""

_ON, _SEEN, _OFF = range(3)


def unseen(samples: pl.DataFrame, spans: pl.DataFrame, away: pl.DataFrame, lives: pl.DataFrame) -> pl.DataFrame:
    """``tid``, ``begin_ns``, ``end_ns``, ``state``: ``UNKNOWN``. ``samples`` and ``spans``: all of the pass; ``away``:
    when threads were off their processors, or not there. For a sampling period after it was last seen a thread may have
    worked, and for one before it was seen again. It is seen by samples, and where it begins or ends a span."""
    period_ns = int(samples["cpu_ns"].median() or 0)  # type: ignore[arg-type]
    limit_ns = max(LEAST_NS, PERIODS * period_ns)
    threads = lives.select("tid")

    def seen(frame: pl.DataFrame, time: pl.Expr, kind: int) -> pl.DataFrame:
        return frame.select("tid", time_ns=time.cast(pl.Int64), kind=pl.lit(kind, pl.Int8))

    edges = pl.concat(
        [
            seen(threads, pl.lit(-FAR), _ON),
            seen(threads, pl.lit(FAR), _OFF),
            seen(away, pl.col("begin_ns"), _OFF),
            seen(away, pl.col("end_ns"), _ON),
            *(
                seen(frame.join(threads, on="tid", how="semi"), pl.col(time), _SEEN)
                for frame, time in ((samples, "time_ns"), (spans, "begin_ns"), (spans, "end_ns"))
            ),
        ]
    ).sort("tid", "time_ns", "kind")
    begin, end = pl.col("time_ns"), pl.col("next_ns")
    return (
        edges.with_columns(next_ns=begin.shift(-1).over("tid"), next=pl.col("kind").shift(-1).over("tid"))
        .filter((pl.col("kind") != _OFF) & (pl.col("next") != _ON) & (end - limit_ns > begin))
        .select(
            "tid",
            begin_ns=pl.when(begin > -FAR).then(begin + period_ns).otherwise(begin),
            end_ns=pl.when(end < FAR).then(end - period_ns).otherwise(end),
            state=pl.lit(UNKNOWN),
        )
    )
