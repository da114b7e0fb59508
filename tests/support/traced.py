"""A run's trace as the real trace processor has it, beside what the run's tables want there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwprof.run.directory import RunDirectory
from hwprof.trace.writer import TraceSummary, write_trace
from tests.support import perfetto

if TYPE_CHECKING:
    from tests.support.perfetto.trace_processor import TraceProcessor

SLICES = """select s.id, o.name as parent, s.name, s.category, s.ts, s.dur, s.depth, s.arg_set_id, t.name as track
            from slice s join track t on s.track_id = t.id left join slice o on s.parent_id = o.id"""
COUNTERS = "select t.name as track, t.unit, c.ts, c.value from counter c join counter_track t on c.track_id = t.id"
FLOWS = """select a.ts, a.name, b.ts as target_ts, b.name as target from flow f join slice a on f.slice_out = a.id
           join slice b on f.slice_in = b.id order by 1, 3"""


class Traced:
    """A run, its trace, and the trace processor with the trace loaded."""

    def __init__(self, run: RunDirectory, target: Path) -> None:
        self.run = run
        self.summary: TraceSummary = write_trace(run, target)
        self.processor: TraceProcessor = perfetto.load(target)
        clock = run.manifest.clock
        self.to_boottime = clock.boottime_ns - clock.monotonic_ns

    def slices(self) -> list[dict[str, Any]]:
        return self.processor.query(SLICES)

    def args(self) -> dict[int, dict[str, Any]]:
        """The arguments of each set, by key without ``debug.``."""
        found: dict[int, dict[str, Any]] = {}
        for row in self.processor.query("select arg_set_id, key, string_value, int_value, real_value from args"):
            values = [row[kind] for kind in ("string_value", "int_value", "real_value") if row[kind] is not None]
            found.setdefault(row["arg_set_id"], {})[row["key"].removeprefix("debug.")] = values[0]
        return found

    def by_span(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The slice, with its arguments, of each span that is no operator."""
        args = self.args()
        found = {}
        for row in self.slices():
            if row["category"] != "op":
                facts = args[row["arg_set_id"]]
                found[row["track"].rpartition("(")[2][:-1], facts["span"]] = row | {"args": facts}
        return found

    def expected(self) -> Counter[tuple[Any, ...]]:
        """What slices there must be, from the tables."""
        return Counter(
            (row["pass"], row["kind"], row["path"], row["begin_ns"] + self.to_boottime, row["end_ns"] - row["begin_ns"])
            for row in self.run.read("spans").iter_rows(named=True)
        )

    def found(self) -> Counter[tuple[Any, ...]]:
        """What slices there are."""
        return Counter(
            (row["track"].rpartition("(")[2][:-1], row["category"], row["name"], row["ts"], row["dur"])
            for row in self.slices()
        )
