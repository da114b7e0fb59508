"""What several sections of a report need of a run's Python code: by looks, by samples, call by call, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from hwprof.analysis import python_functions, python_stacks
from hwprof.analysis.details import detail_of
from hwprof.analysis.iterations import select
from hwprof.analysis.slower import Slower, slower
from hwprof.run.details import CallsDetail, LineCostsDetail
from hwprof.run.manifest import PassRecord
from hwprof.run.notes import Note
from hwprof.run.roles import Role
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class CallsFound(NamedTuple):
    """Calls of Python's functions, and what counting them cost."""

    record: PassRecord
    detail: CallsDetail
    rows: pl.DataFrame
    slower: Slower | None
    notes: list[Note]


class PythonAnalysis:
    """Made once for a run."""

    def __init__(self, analysis: RunAnalysis) -> None:
        self._analysis = analysis

    @cached_property
    def looked_at(self) -> PassRecord | None:
        """The pass in which somebody looked at Python's stacks; of several the first in which threads' ends are known:
        in others a function of a thread that has ended lasts to the end of the iteration."""
        looks, lives = (self._analysis.run.count_by_pass(table) for table in ("python_frames", "lifetimes"))
        known = [record for name, record in self._analysis.records.items() if looks.get(name)]
        return next((record for record in known if lives.get(record.name)), next(iter(known), None))

    def _frames(self, record: PassRecord) -> pl.DataFrame:
        """Of ``python_frames``."""
        frames, lives = (self._analysis.of_pass(table, record) for table in ("python_frames", "lifetimes"))
        return python_stacks.while_alive(frames, lives)

    @cached_property
    def functions(self) -> pl.DataFrame | None:
        """The functions of the pass ``looked_at``, as ``python_functions.functions`` makes them."""
        record = self.looked_at
        if record is None:
            return None
        looks = python_stacks.looks_of(record)
        calls = python_functions.calls(self._frames(record), looks)
        return python_functions.functions(calls, self._analysis.of_pass("spans", record), record, looks)

    @cached_property
    def lines(self) -> pl.DataFrame | Unavailable:
        """The lines of the pass ``looked_at`` and their kernels, as ``python_lines.lines`` makes them."""
        record = self.looked_at
        if record is None:
            return Unavailable("nobody looked at Python's stacks")
        sampled = self._analysis.sampled_passes.get(record.name)
        if sampled is None:
            return Unavailable(f"no samples were taken in the pass {record.name}", f"--sample-passes {record.name}")
        from hwprof.analysis import python_lines, sampled_stacks

        looks = python_stacks.looks_of(record)
        python = python_stacks.python_stacks(self._frames(record), looks)
        stacks = sampled_stacks.SampledStacks(
            python, looks, record, sampled.spans, self._analysis.modules, sampled.switches
        )
        draws = looks.draws_hz and looks.draws_hz * sampled.elapsed_ns / 1e9
        met = python_lines.Met(stacks.lines_at(sampled.inside), stacks.by_time(sampled.inside), draws)
        return python_lines.lines(sampled.inside, sampled.kernels, python.stacks, met, len(sampled.iterations))

    @cached_property
    def calls(self) -> CallsFound | None:
        """Of the first pass in which calls were counted: ``python_calls.SCHEMA``."""
        from hwprof.analysis import python_calls

        counted = self._analysis.run.count_by_pass("python_calls")
        record = next((record for name, record in self._analysis.records.items() if counted.get(name)), None)
        by = next((one for one in record.collectors if one.role is Role.CALLS), None) if record is not None else None
        detail = by.detail_as(CallsDetail) if by is not None else None
        if record is None or by is None or detail is None:
            return None
        whose = python_stacks.Looks(profiler=detail.profiler_paths, framework=detail.framework_paths)
        rows = python_calls.python_calls(self._analysis.of_pass("python_calls", record), whose, detail.iterations)
        alone = [one.index for one in record.iterations if one.alone_for == by.name]
        return CallsFound(record, detail, rows, self.slower(record, alone), by.notes)

    def slower(self, record: PassRecord, iterations: Sequence[int] | None = None) -> Slower | None:
        """How much longer so many iterations of a pass took, by default those that its times are from; None: there is
        nothing to compare them with."""
        main = self._analysis.main
        if main is None or (iterations is None and record.name == main.name):
            return None
        of_it, of_main = (self._analysis.of_pass("spans", one) for one in (record, main))
        return slower(of_it, select(record.iterations).timed if iterations is None else iterations, of_main, main)

    @cached_property
    def line_costs(self) -> tuple[PassRecord, LineCostsDetail, pl.DataFrame] | None:
        """Of the first pass that looked at lines of Python: ``line_costs.SCHEMA``."""
        from hwprof.analysis import line_costs

        rows = self._analysis.run.count_by_pass("python_line_costs")
        for name, record in {one.name: one for one in self._analysis.run.kept_passes()}.items():
            detail = detail_of(LineCostsDetail, record)
            if rows.get(name) and detail is not None:
                whose = python_stacks.Looks(profiler=detail.profiler_paths, framework=detail.framework_paths)
                table = self._analysis.of_pass("python_line_costs", record)
                return record, detail, line_costs.line_costs(table, whose, self._analysis.run.read("module_code"))
        return None
