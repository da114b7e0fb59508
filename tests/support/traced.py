"""A run's trace as the real trace processor has it, beside what the run's tables want there."""

from __future__ import annotations

import re
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
ROOTED = """with recursive chain(id, tid, callsite, frames) as (
              select s.id, t.tid, s.callsite_id, '' from perf_sample s join thread t using (utid) union all
              select chain.id, chain.tid, c.parent_id, m.name || ' ' || f.name || ' > ' || chain.frames from chain
              join stack_profile_callsite c on chain.callsite = c.id join stack_profile_frame f on c.frame_id = f.id
              join stack_profile_mapping m on f.mapping = m.id)
            select frames, tid from chain where callsite is null"""
"""Of each sample the frames of its call stack, the outermost first: ``/[layer] model.0 > /[operator] aten::add > ``."""
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
            (row["pass"], row["kind"], _name(row), row["begin_ns"] + self.to_boottime, row["end_ns"] - row["begin_ns"])
            for row in self.run.read("spans").iter_rows(named=True)
        )

    def found(self) -> Counter[tuple[Any, ...]]:
        """What slices there are."""
        return Counter(
            (row["track"].rpartition("(")[2][:-1], row["category"], row["name"], row["ts"], row["dur"])
            for row in self.slices()
        )


def _name(span: dict[str, Any]) -> str:
    """Of the slice of a row of ``spans`` of a quiet run."""
    warm_up = span["kind"] == "iteration" and span["warmup"]
    return f"{span['path']} (warm-up)" if warm_up else str(span["path"])


def argument(event: str) -> str:
    """An event's name among arguments."""
    return re.sub(r"[^0-9A-Za-z_]+", "_", event).strip("_")


def argument_names(processor: TraceProcessor) -> set[str]:
    """Those of all arguments, ``counts.cycles``; of an array its own name."""
    keys = [row["key"] for row in processor.query("select distinct key from args where key glob 'debug.*'")]
    return {key.partition("[")[0].removeprefix("debug.") for key in keys}


def needs_no_quotation_marks(processor: TraceProcessor, names: set[str]) -> bool:
    """Whether SQL takes each part of these names as a column's, and all of them as the columns of one view."""
    parts = sorted({part for name in names for part in name.split(".")})
    columns = [f"extract_arg(arg_set_id, 'debug.{name}') as {name.replace('.', '_')}" for name in sorted(names)]
    processor.query(f"create perfetto view facts as select name, {', '.join(columns)} from slice")
    return all(processor.query(f"select 1 as {part}") == [{part: 1}] for part in parts)
