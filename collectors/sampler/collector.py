"""The sampler as a session sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from collectors.sampler.code_mappings import JIT_ENVIRONMENT, mappings_now
from collectors.sampler.notes import busy_threads, represented, sampling_notes
from collectors.sampler.plan import Options, Plan, make_plan, too_frequent
from collectors.sampler.recorder import Recorder
from collectors.sampler.sample_cost import sample_cost_ns
from collectors.shared import free_memory
from collectors.shared.child_processes import Children, Work
from collectors.shared.counting.threads import RefusedError
from collectors.shared.event_opening import KERNEL, NotAllowedError
from collectors.shared.symbols.jit import keep_perf_map
from hwprof.collector.contract import Availability, Collected, Collector, Note, PassContext, Unavailable
from hwprof.errors import HwprofError
from hwprof.hardware import permission
from hwprof.hardware.machine import describe

RECORD_FILE: Final = "records.bin"


class SamplerCollector(Collector):
    """Samples every thread of the worker from the supervisor.

    Everything happens in the supervisor's process: the kernel writes samples into rings that the worker never sees, so
    neither a thread, nor memory, nor a lock of the sampler's is in what is measured, and samples survive a worker that
    dies. Options: ``frequency`` (Hz), ``depth`` (callers), ``kernel`` (false: user code only).
    """

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._recorder: Recorder | None = None
        self._cost_ns: float | None = None
        self._children: Children | None = None
        self._childrens = Work()
        self._context: PassContext | None = None

    # --- Collector

    def availability(self) -> Availability:
        """Whether samples can be had with the options that nobody chose; tries it out for some milliseconds."""
        try:
            plan = _planned(Options())
        except HwprofError as error:
            return Availability.no(error.message, error.remedy)
        self._plan = plan
        return Availability(detail=plan.detail(), notes=tuple(plan.notes), tools=(KERNEL,))

    def check_options(self, options: dict[str, Any]) -> None:
        """Raises ``HwprofError`` for a frequency that the kernel refuses."""
        _refuse_too_frequent(Options.of(options))

    def holds_counters(self) -> bool:
        """Where a PMU samples, for as long as it does."""
        return self._plan is not None and self._plan.reading

    def worker_environment(self) -> Mapping[str, str]:
        """What makes the worker's JIT compilers leave the names of their code."""
        return JIT_ENVIRONMENT

    def start(self, context: PassContext) -> None:
        """Watches the worker from its first moments, so that none of its mappings is missed; samples from
        ``work_begins`` on."""
        plan = _planned(Options.of(context.options))
        self._cost_ns = sample_cost_ns(plan.leaders[0], plan.opening)
        try:
            recorder = Recorder(plan, context.pid, context.raw / RECORD_FILE)
        except RefusedError as error:
            raise HwprofError(f"cannot watch the worker: {error}") from error
        except OSError as error:
            why = permission.why_not_allowed(error)
            raise HwprofError(f"cannot watch the worker: {why.reason}", why.remedy) from error
        recorder.mappings += mappings_now(context.pid)
        self._plan, self._recorder, self._context = plan, recorder, context

    def stop(self) -> Collected:
        """Decodes what the rings held, and names the code: the worker has ended by now."""
        plan, recorder, context = self._plan, self._recorder, self._context
        if plan is None or recorder is None or context is None:
            return Collected()
        recorder.close()
        collected = _collected(plan, recorder, context, self._cost_ns)
        free_memory.give_back()  # stacks of many threads that left the processor: a hundred megabytes
        collected.notes += self._childrens.notes(int(collected.tables["samples"]["cpu_ns"].sum()), "sampled")
        return collected

    # --- How far the worker is

    def work_begins(self) -> None:
        """Samples from now on. Raises ``HwprofError`` where the main thread cannot be sampled."""
        if self._recorder is not None and self._context is not None:
            self._children = Children(self._context.pid)
            try:
                self._recorder.begin()
            except HwprofError:
                self._recorder.close()
                raise

    def step(self) -> None:
        """An iteration is done: the rings are emptied."""
        if self._recorder is not None:
            self._recorder.drain()
        if self._children is not None:
            self._children.look()

    def work_ends(self) -> None:
        """Samples no more."""
        if self._recorder is not None:
            self._recorder.end()
        if self._children is not None:
            self._childrens = self._children.worked()


def _planned(options: Options) -> Plan:
    _refuse_too_frequent(options)
    try:
        return make_plan(options, describe())
    except NotAllowedError as error:
        why = permission.why_not_allowed(error)
        raise HwprofError(why.reason, why.remedy) from error


def _refuse_too_frequent(options: Options) -> None:
    why = too_frequent(options.frequency_hz) if options.frequency_hz is not None else None
    if why is not None:
        raise HwprofError(why.reason, why.remedy)


def _collected(plan: Plan, recorder: Recorder, context: PassContext, cost_ns: float | None) -> Collected:
    from collectors.sampler import naming, tables
    from collectors.sampler.off_cpu_reasons import with_reasons
    from collectors.sampler.record_file import read_record_file
    from collectors.sampler.wakeups import with_wakers
    from collectors.shared.counting.tables import threads_table

    record_file = context.raw / RECORD_FILE
    recording = read_record_file(
        record_file,
        reading=plan.reading,
        switch_out_events=recorder.switch_out_events,
        wakeup_events=recorder.wakeup_events,
        tracepoint=plan.opening.wakeups,
    )
    samples, silent = tables.without_silent(tables.samples_table(recording.samples, recording.stacks, recorder.events))
    stacks = tables.stacks_table(recording.stacks)
    try:
        jit_kernels = keep_perf_map(context.pid, context.raw)
        named = naming.name(samples, stacks, recorder.own_mappings(), jit_kernels)
    except Exception as error:  # samples without names still show where the time goes: by layer, by thread
        jit_kernels, named = [], naming.nameless(samples, stacks, error)
    switches, unexplained = tables.switches_table(recording.switches), list[Note]()
    try:
        switches = with_reasons(
            switches, recording.switch_outs, [naming.mapped(one) for one in recorder.own_mappings()]
        )
    except Exception as error:  # how long threads waited is known without what for
        unexplained = [Note.not_available("off-CPU reasons", Unavailable(str(error)))]
    switches = with_wakers(switches, recording.wakeups)
    switches = recorder.lifetimes.with_beginnings(switches, context.pid)
    own_threads = recorder.own_threads()
    sampled_ns = int(samples["cpu_ns"].sum())
    process_ns = recorder.process_ns if not plan.opening.exclude_kernel else None
    share, of_new = represented(recorder.counted, int(recording.samples.period.sum()), process_ns, sampled_ns)
    detail = msgspec.structs.replace(
        plan.detail(),
        samples=samples.height,
        threads=len(recorder.sampled),
        represented_share=share,
        unsampled_of_new=of_new,
        unsampled_threads=len(recorder.sampled) - samples["tid"].n_unique(),
        busy_threads=busy_threads(samples),
        sample_cost_ns=round(cost_ns) if cost_ns is not None else None,
        reasons=bool(recorder.switch_out_events),
        wakers=bool(recorder.wakeup_events),
        lost=recording.lost,
        throttled=recording.throttled,
        silent=silent,
        torn_bytes=recording.torn_bytes,
        threads_missed=recorder.missed,
        record_bytes=recorder.drained_bytes,
        ring_bytes=recorder.ring_bytes,
        jit_kernels=len(jit_kernels),
        **named.detail(),
    )
    collected = Collected(
        tables={
            "samples": named.samples,
            "stacks": named.stacks,
            "kernels": named.kernels,
            "threads": threads_table(own_threads, context),
            "lifetimes": recorder.lifetimes.table(
                context.pid, [one.tid for one in own_threads], complete=not recorder.lost
            ),
            "switches": switches,
            "mappings": tables.mappings_table(recorder.mappings),
        },
        notes=[*plan.notes, *sampling_notes(plan, recorder, detail), *named.notes(), *unexplained],
        detail=detail,
    )
    record_file.unlink()  # the tables hold all of it
    return collected
