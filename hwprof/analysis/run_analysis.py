"""What several sections of a report need of a run: each table is read once, and each analysis made once, when it is
first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl

from hwprof.analysis import (
    flop_check,
    layers,
    metrics,
    overhead,
    uncore,
)
from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.cpu_time import Uncounted, uncounted
from hwprof.analysis.figure_tables import FigureTables, Further, figure_tables
from hwprof.analysis.instrumented import belonging
from hwprof.analysis.instrumented_counts import Counted, instrumented_counts
from hwprof.analysis.instrumented_pass import InstrumentedPass, instrumented_pass, with_same_counters
from hwprof.analysis.loaded_pass import LoadedPass, on_these
from hwprof.analysis.throughput import Throughput, throughput
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import MetricDefinition, PassRecord
from hwprof.run.passes import MEASURE, TRACE
from hwprof.run.repeated_spans import require_sound
from hwprof.run.schema import empty
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:  # these need numpy, which a run without samples does not
    from hwprof.analysis.findings.facts import Finding
    from hwprof.analysis.run_energy import EnergyAnalysis
    from hwprof.analysis.run_memory import MemoryAnalysis
    from hwprof.analysis.run_operators import OperatorsAnalysis
    from hwprof.analysis.run_python import PythonAnalysis
    from hwprof.analysis.run_roofline import RunRoofline
    from hwprof.analysis.sampled_cpi import KernelCpi
    from hwprof.analysis.sampled_cycles import SampledCycles
    from hwprof.analysis.sampled_pass import SampledPass
    from hwprof.analysis.thread_times import ThreadTimes


OF_TIMED_PASSES: Final = (
    "modules", "measured", "traced", "dram", "uncounted", "watching", "counting", "tracing", "sampled_passes",
    "sampled", "thread_times", "time_budget", "block_budgets", "operators", "python", "energy",
    "memory",
)  # fmt: skip
"""What is not made of instrumented passes, which come last: it may be made before they have ended."""

_OF_ONE_PASS: Final = ("_rows", "_attributions")


class RunAnalysis:
    """A run's tables and analyses. The main pass is ``measure``; where there is none, the first completed one."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.machine = run.manifest.machine
        self._rows: dict[tuple[str, str], pl.DataFrame] = {}
        self._attributions: dict[str, Attribution] = {}

    def forget(self) -> None:
        """Lets go of all tables and analyses, which refer to one another: else they stay until somebody collects."""
        run = self.run
        vars(self).clear()
        vars(self).update(vars(RunAnalysis(run)))

    def look_ahead(self) -> None:
        """Makes what instrumented passes that are still to come change nothing of."""
        for name in OF_TIMED_PASSES:
            getattr(self, name)
        _ = self.operators.table, self.operators.by_layer, self.operators.tree
        _ = self.python.functions, self.python.lines, self.energy.layers, self.memory.watched

    def go_on_with(self, run: RunDirectory) -> None:
        """The same run, when those have come to their end: what was made ahead is kept, where it is still true."""
        ahead = {name: value for name, value in vars(self).items() if name in (*OF_TIMED_PASSES, *_OF_ONE_PASS)}
        before, now = ([one for one in each.kept_passes() if one.times_from is None] for each in (self.run, run))
        self.run = run
        self.forget()
        if before == now and self.modules.equals(ahead["modules"]):
            vars(self).update(ahead)

    def of_pass(self, table: str, record: PassRecord) -> pl.DataFrame:
        """The rows of a pass. Counts, of which there may be a million, are read again whenever they are asked for."""
        if table == "counts":
            return self.run.of_pass(table, record.name)
        key = (table, record.name)
        if key not in self._rows:
            self._rows[key] = self.run.of_pass(table, record.name)
        return self._rows[key]

    @cached_property
    def modules(self) -> pl.DataFrame:
        """The table ``layers``."""
        return self.run.read("layers")

    @cached_property
    def records(self) -> dict[str, PassRecord]:
        """The completed passes that did something, by name."""
        return {record.name: record for record in self.run.completed_passes() if record.iterations}

    @property
    def main(self) -> PassRecord | None:
        """The pass that times and counts are from."""
        return self.records.get(MEASURE) or next(iter(self.records.values()), None)

    @property
    def threads(self) -> int | None:
        """How many threads the workload has."""
        return self.run.manifest.workload.threads if self.run.manifest.workload else None

    @cached_property
    def measured(self) -> LoadedPass | None:
        """The main pass."""
        return self._load(self.main) if self.main is not None else None

    @cached_property
    def traced(self) -> LoadedPass | None:
        """The trace pass. Its counts are not read: operators and its slowness are what it is for."""
        record = self.records.get(TRACE)
        if record is None:
            return None
        return self.measured if record is self.main else self._load(record, counted=False)

    @cached_property
    def counted(self) -> Counted | None:
        """The counts of the instrumented pass that did the main pass's work, with the machine's own instruction set."""
        if self.measured is None:
            return None
        record = belonging(self.run.kept_passes(), self.measured.record)
        if record is None:
            return None
        spans, counts = self.of_pass("spans", record), self.of_pass("counts", record)
        counted, timed = self._attribution(record), self.measured.attribution
        return instrumented_counts(record, spans, counts, counted, timed, self.modules)

    @cached_property
    def definitions(self) -> tuple[MetricDefinition, ...]:
        """The metrics that this run may have."""
        return metrics.definitions(self.main, self.machine, self.counted.record if self.counted is not None else None)

    @cached_property
    def dram(self) -> uncore.Traffic | None:
        """What the memory controllers moved in the main pass."""
        if self.measured is None:
            return None
        iterations = self.measured.attribution.iterations.all
        return uncore.by_owner(self.measured.spans, self.modules, self.series(uncore.PREFIX), iterations)

    @cached_property
    def python(self) -> PythonAnalysis:
        """What is known of Python's code."""
        from hwprof.analysis.run_python import PythonAnalysis

        return PythonAnalysis(self)

    @cached_property
    def memory(self) -> MemoryAnalysis:
        """What is known of memory."""
        from hwprof.analysis.run_memory import MemoryAnalysis

        return MemoryAnalysis(self)

    @cached_property
    def energy(self) -> EnergyAnalysis:
        """What is known of energy."""
        from hwprof.analysis.run_energy import EnergyAnalysis

        return EnergyAnalysis(self)

    @cached_property
    def figures(self) -> FigureTables | None:
        """The figures of layers, layer types and stages."""
        if self.measured is None or self.dram is None:
            return None
        further = Further(self.dram, self.counted, self._sampled_cycles)
        found = figure_tables(self.measured, self.modules, self.definitions, self.threads, further)
        return found if self.uncounted is None else found.without_cpu_usage(self.definitions)

    @cached_property
    def uncounted(self) -> Uncounted | None:
        """Which part of the main pass's CPU time was counted of no thread, as ``cpu_time.uncounted`` tells it."""
        if self.measured is None:
            return None
        return uncounted(self.measured.spans, self.measured.counts, self.measured.record.iterations)

    @cached_property
    def module_times(self) -> pl.DataFrame | None:
        """Modules around the layers in the main pass, by their own spans, as ``layers.module_table`` makes it."""
        if self.measured is None or self.figures is None:
            return None
        rows = self.figures.layers.rows
        return layers.module_table(self.measured.spans, self.modules, self.measured.attribution, rows)

    @cached_property
    def watching(self) -> pl.DataFrame | None:
        """How much slower timing every layer makes the main pass, as ``overhead.watching_overhead`` tells it."""
        if self.measured is None:
            return None
        return overhead.watching_overhead(self.measured.attribution, self.measured.record, self.measured.spans)

    @cached_property
    def counting(self) -> pl.DataFrame | None:
        """How much slower counting makes the main pass's layers, as ``overhead.counting_overhead`` tells it."""
        return overhead.counting_overhead(self.measured.attribution) if self.measured is not None else None

    @cached_property
    def tracing(self) -> pl.DataFrame | None:
        """How much slower than the main pass the trace pass is, as ``overhead.pass_overhead`` tells it."""
        if self.measured is None or self.traced is None or self.traced is self.measured:
            return None
        return overhead.pass_overhead(self.measured.attribution, self.traced.attribution)

    @property
    def why_no_watching(self) -> Unavailable | None:
        """Why ``watching`` is not known, though there are iterations of both kinds."""
        if self.measured is None:
            return None
        reason = overhead.why_no_watching_overhead(self.measured.attribution, self.measured.record)
        return on_these(reason, self.measured)

    @property
    def why_no_counting(self) -> Unavailable | None:
        """Why ``counting`` is not known, though there are iterations of both kinds."""
        if self.measured is None:
            return None
        return on_these(overhead.why_no_counting_overhead(self.measured.attribution), self.measured)

    @property
    def why_no_tracing(self) -> Unavailable | None:
        """Why ``tracing`` is not known, though there are both passes."""
        if self.measured is None or self.traced is None or self.traced is self.measured:
            return None
        reason = overhead.why_no_pass_overhead(self.measured.attribution, self.traced.attribution)
        return on_these(reason, self.measured, self.traced)

    @cached_property
    def flop_checks(self) -> dict[str, flop_check.FlopCheck]:
        """Counted FLOPs against analytic ones, by layer."""
        counted = next((metric for metric in self.definitions if metric.name == flop_check.COUNTED), None)
        if counted is None or self.figures is None:
            return {}
        calls = self.run.read("layer_calls")
        return flop_check.flop_checks(self.figures.layers, calls, metrics.events_of(counted))

    @cached_property
    def operators(self) -> OperatorsAnalysis:
        """What is known of the framework's operators."""
        from hwprof.analysis.run_operators import OperatorsAnalysis

        return OperatorsAnalysis(self)

    @cached_property
    def instrumented(self) -> list[InstrumentedPass]:
        """One for each kept pass whose times are another's."""
        counts = self.counted  # nobody asks for the attribution that it is made of after this
        records = {record.name: record for record in self.run.kept_passes()}
        if any(record.times_from is not None for record in records.values()):
            self.run.require_values("kernel_counts")
        found = []
        for record in records.values():
            if record.times_from is None:
                continue
            companion = records.get(record.times_from)
            timed = self._attribution(companion) if companion is not None else None
            tables = {name: self.of_pass(name, record) for name in ("spans", "kernels", "repeated_spans")}
            require_sound(self.run.path / "repeated_spans.parquet", tables["repeated_spans"], tables["spans"])
            rows = self.run.scan_pass("kernel_counts", record.name)
            counted = self._attribution(record)
            one = instrumented_pass(record, companion, tables, rows, counted, timed, self.modules)
            found.append(with_same_counters(one, counts) if one is not None else None)
            del self._attributions[record.name]
        return [one for one in found if one is not None]

    @property
    def samples_taken(self) -> dict[str, int]:
        """How many samples each completed pass took, wherever they lie; passes without any are left out."""
        taken = self.run.count_by_pass("samples")
        return {name: taken[name] for name in self.records if taken.get(name)}

    @cached_property
    def sampled(self) -> SampledPass | None:
        """The completed pass with the most samples in timed iterations; None where there are none."""
        return max(self.sampled_passes.values(), key=lambda one: one.inside.height, default=None)

    @cached_property
    def sampled_passes(self) -> dict[str, SampledPass]:
        """The completed passes with samples in timed iterations, by name."""
        taken = self.samples_taken
        if not taken:
            return {}
        from hwprof.analysis.sampled_pass import sampled_pass

        found = {
            record.name: sampled_pass(
                record,
                *(self.of_pass(table, record) for table in ("samples", "spans", "kernels", "switches", "threads")),
                stacks=self.of_pass("stacks", record),
                lifetimes=self.of_pass("lifetimes", record),
                series=self.of_pass("series", record),
                modules=self.modules,
                threads=record.threads or self.threads,
            )
            for record in self.records.values()
            if record.name in taken
        }
        return {name: one for name, one in found.items() if one.inside.height}

    @cached_property
    def thread_times(self) -> ThreadTimes | None:
        """What threads did in the pass ``sampled``; None where its calling thread was not."""
        if self.sampled is None:
            return None
        from hwprof.analysis.thread_times import thread_times

        return thread_times(self.sampled)

    @cached_property
    def time_budget(self) -> pl.DataFrame | None:
        """Where the time of the pass ``sampled`` goes, as ``time_budget.time_budget`` makes it."""
        if self.thread_times is None:
            return None
        from hwprof.analysis.time_budget import time_budget

        return time_budget(self.thread_times)

    @cached_property
    def block_budgets(self) -> pl.DataFrame | None:
        """The same of the modules around layers, as ``block_budgets.block_budgets`` makes it."""
        if self.thread_times is None:
            return None
        from hwprof.analysis.block_budgets import block_budgets

        return block_budgets(self.thread_times, self.modules)

    @cached_property
    def throughput(self) -> Throughput | Unavailable:
        """How many images a second the main pass did."""
        workload = self.run.manifest.workload
        if self.measured is None or workload is None:
            return Unavailable("no pass was completed")
        if not workload.sources:
            return Unavailable("the workload counts no images")
        return throughput(self.measured.spans, self.measured.attribution.iterations, len(workload.sources))

    @cached_property
    def alike(self) -> list[list[str]]:
        """The layers that do the same, as ``alike_layers.alike`` groups them."""
        from hwprof.analysis.alike_layers import alike

        return alike(self.figures.layers.rows) if self.figures is not None else []

    @cached_property
    def alike_budgets(self) -> pl.DataFrame | None:
        """Budgets of these, as ``block_budgets.alike_budgets`` makes them."""
        if self.thread_times is None:
            return None
        from hwprof.analysis.block_budgets import alike_budgets

        return alike_budgets(self.thread_times, self.alike)

    @cached_property
    def roofline(self) -> RunRoofline | Unavailable:
        """How near layers come to this machine's peaks, and what bounds them."""
        from hwprof.analysis.run_roofline import run_roofline

        return run_roofline(self)

    @cached_property
    def findings(self) -> list[Finding] | Unavailable:
        """Causes of lost time, as ``run_findings.run_findings`` finds them."""
        from hwprof.analysis.run_findings import run_findings

        return run_findings(self)

    @cached_property
    def kernel_cpi(self) -> KernelCpi | None:
        """CPI by samples and instrumented instructions, where nothing counted cycles."""
        if self.sampled is None:
            return None
        from hwprof.analysis.sampled_cpi import cpi_by_time

        timed = self.measured.attribution if self.measured and self.measured.record.name == MEASURE else None
        return cpi_by_time(self.sampled, self.instrumented, self.of_pass("counts", self.sampled.record), timed)

    @property
    def _sampled_cycles(self) -> SampledCycles | None:
        if self.counted is None or self.kernel_cpi is None:
            return None
        from hwprof.analysis.sampled_cycles import sampled_cycles

        return sampled_cycles(self.kernel_cpi.by_time, self.modules)

    def _load(self, record: PassRecord, *, counted: bool = True) -> LoadedPass:
        spans = self.of_pass("spans", record)
        if counted:
            outer = spans.filter(pl.col("kind") != "layer").select("span")
            counts = self.of_pass("counts", record).join(outer, on="span", how="semi")
            return LoadedPass(record, spans, counts, self._attribution(record))
        counts = empty("counts")
        return LoadedPass(record, spans, counts, attribute(spans, counts, self.modules, record))

    def _attribution(self, record: PassRecord) -> Attribution:
        """Of a pass's counts. Those of an instrumented pass are what they are, whoever disturbed it."""
        if record.name not in self._attributions:
            self._attributions[record.name] = attribute(
                self.of_pass("spans", record),
                self.of_pass("counts", record),
                self.modules,
                record,
                disturbed_too=record.times_from is not None,
            )
        return self._attributions[record.name]

    def series(self, prefix: str) -> pl.DataFrame:
        """The main pass's series whose names begin like that."""
        assert self.main is not None
        return self.of_pass("series", self.main).filter(pl.col("name").str.starts_with(prefix))
