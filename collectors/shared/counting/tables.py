"""The tables that counting by thread fills. polars brings threads of its own: it is imported when counting is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from collectors.shared.counting.readings import CountColumns
from hwprof.collector.contract import PassContext

if TYPE_CHECKING:
    import polars as pl


class NamedThread(Protocol):
    """A thread, and what it was called."""

    @property
    def tid(self) -> int:
        """Its number, the operating system's."""
        ...

    @property
    def name(self) -> str:
        """Empty where it is not known."""
        ...


def counts_table(columns: CountColumns, names: Sequence[str]) -> pl.DataFrame:
    """Rows of ``counts``, without ``pass``; ``names`` are the events that the columns number. Texts are numbers: there
    may be millions of rows."""
    import polars as pl

    return pl.DataFrame(
        {
            "iteration": pl.Series(columns.iteration).cast(pl.Int32),
            "span": columns.span,
            "tid": pl.Series(columns.tid).cast(pl.Int32),
            "event": pl.Series("event", names, dtype=pl.Enum(names)).gather(pl.Series(columns.event)),
            "value": columns.value,
            "enabled_ns": columns.enabled_ns,
            "running_ns": columns.running_ns,
        }
    ).with_columns(provenance=pl.lit("measured", pl.Enum(["measured"])))


def threads_table(threads: Sequence[NamedThread], context: PassContext) -> pl.DataFrame:
    """Every thread that was looked at, once: of two that had the same number, the later one."""
    import polars as pl

    return pl.DataFrame(
        [
            {
                "pass": context.pass_name,
                "pid": context.pid,
                "tid": thread.tid,
                "name": thread.name,
                "role": "main" if thread.tid == context.main_tid else "worker",
            }
            for thread in threads
        ]
    ).unique(subset="tid", keep="last", maintain_order=True)
