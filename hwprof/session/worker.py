"""The child: one pass in a process of its own. ``python -m hwprof.session.worker ORDER.json TELLS WAITS [WEIGHTS]``,
or forked by the ``fork_server``.

It does the workload under the in-process collectors, writes the pass's tables as Parquet into the pass's folder, and
tells the supervisor about its progress on the first file descriptor. When its workload stands, it waits for a byte on
the second: until then the pass before may be busy, and those who watch it from outside not be there. The third is a
file for calibrated weights, see ``workload.shared_weights``.
"""

from __future__ import annotations

import faulthandler
import gc
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from hwprof import (
    helper_threads,  # noqa: F401 - what it binds must be Python's own: before the model's code runs
    interrupts,
    processes,
)
from hwprof.analysis.disturbed import is_disturbed
from hwprof.errors import HwprofError
from hwprof.interrupts import Interrupt
from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.session import disturbance
from hwprof.session.extent import Extent
from hwprof.session.in_process import RunningCollectors
from hwprof.session.last_words import last_words
from hwprof.session.meanwhile import Meanwhile
from hwprof.session.messages import Finished, Order, Phase, PhaseBegins, Reached, Step
from hwprof.session.plan import joint_sets, schedule
from hwprof.session.quiet import wait_until_quiet
from hwprof.session.recorder import SpanRecorder
from hwprof.session.reporter import NobodyListensError, Reporter
from hwprof.session.turn import Turn

if TYPE_CHECKING:  # imported when the model is built
    import polars as pl

    from hwprof.session.foreign_spans import Added
    from hwprof.workload.protocol import Stages

LONG_S: Final = 0.5
"""An iteration that takes longer is not done once more, not even in part, for a user who has asked for the end."""

NAMED: Final = 3
"""Paths in a note."""


def main(arguments: Sequence[str]) -> int:
    """Carries out the order; every failure reaches the supervisor as one message. What the model's code started, and is
    in a session of its own, ends here: nobody else finds it."""
    processes.keep_orphans()
    try:
        return _carried_out(arguments)
    finally:
        group = os.getpgrp()
        processes.kill(one for one in processes.descendants(os.getpid()) if _group_of(one.pid) not in (group, None))


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _carried_out(arguments: Sequence[str]) -> int:
    faulthandler.enable()  # what a library that crashes was called from stands in the log then
    interrupts.tell_apart()
    processes.end_with_parent()  # one that is gone already leaves the second descriptor at its end
    reporter = Reporter(int(arguments[1]))
    with suppress(OSError):
        processes.perf_map_of(os.getpid()).unlink()  # of a process that had this number before
    try:
        weights = int(arguments[3]) if len(arguments) > 3 else None
        _Worker(Order.read(Path(arguments[0])), reporter, int(arguments[2]), weights).carry_out()
    except NobodyListensError:  # nor ends what the model's code started, of whatever group
        processes.end_descendants()
        return 1
    except Interrupt:
        return 1
    except BaseException as error:  # SystemExit too, and what else the model's code may raise
        said = last_words(error, str(Path(arguments[0]).parent))
        reporter.send(said)
        return said.exit_code
    return 0


class Halted(BaseException):
    """The user does not want to wait any longer. No error: nobody's ``except Exception`` may swallow it."""


class _Worker:
    """One pass while it is carried out. Tables are made when measuring is over: until then the process holds torch, the
    workload, the in-process collectors and the recorder, and no thread that is not theirs."""

    def __init__(self, order: Order, reporter: Reporter, turn: int, weights: int | None) -> None:
        """Descriptors: ``turn`` has a byte when it is this worker's, ``weights`` is the calibrated ones' file."""
        self._order = order
        self._turn = Turn(turn)
        self._weights = weights
        if weights is not None:
            os.set_inheritable(weights, False)
        self._plan = order.plan
        self._extent = Extent(order.plan, self._turn)
        self._clock = time.monotonic  # the model's code may put another one there
        self._reporter = reporter
        self._recorder = SpanRecorder()
        self._collectors = RunningCollectors()
        self._interrupted: str | None = None  # how far it came
        self._shortest_s = math.inf  # of all iterations
        self._notes: list[str] = []  # on the workload
        self._added: Added | None = None  # what is known of layers that another program than PyTorch ran
        self._pid = os.getpid()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._record = PassRecord(name=order.plan.name, pid=self._pid, main_tid=self._pid)

    def carry_out(self) -> None:
        """From the import of torch to the written tables."""
        self._prepare()
        self._turn.wait()
        self._wait_until_quiet()
        self._record.begin_ns = time.monotonic_ns()
        self._reporter.send(PhaseBegins(Phase.WARMING_UP, self._plan.warmup))
        for iteration in schedule(self._plan.warmup, 0, 0, alternate=False):
            began_s = time.monotonic()
            self._iterate(iteration)
            self._extent.once_s = time.monotonic() - began_s
            self._step()
        if self._plan.idle_s:
            with self._recorder.region("idle"):
                time.sleep(self._plan.idle_s)
        self._measure()
        self._record.end_ns = time.monotonic_ns()
        self._keep()

    def _prepare(self) -> None:
        self._reporter.send(PhaseBegins(Phase.IMPORTING))
        with self._recorder.region("import"):
            from hwprof.session.preparation import prepare
            from hwprof.workload import factory
            from hwprof.workload.layer_hooks import LayerHooks
            from hwprof.workload.outputs import Outputs

            self._collectors.load(self._order)
            factory.preload(self._order.workload.model)
        self._reporter.send(PhaseBegins(Phase.BUILDING))
        with self._recorder.region("prepare"):
            prepared = prepare(self._order, self._weights, self._reporter)
        self._workload, self._take_back = prepared.workload, prepared.take_back
        self._record.fingerprint = prepared.fingerprint
        self._outputs = Outputs
        self._watch = LayerHooks(self._workload.modules, self._recorder)
        self._watch.time_only()

    def _is_hurried(self) -> bool:
        """When all is measured: whether another call of the model would take longer than the user wants to wait."""
        told = self._turn.is_told_to_stop() or self._interrupted is not None
        return told and self._shortest_s > LONG_S

    def _wait_until_quiet(self) -> None:
        """Before the warm-up: after a rest, caches and frequency are not what they are at work."""
        if not self._plan.wait_quiet_s:
            return
        self._reporter.send(PhaseBegins(Phase.WAITING))
        why_not = wait_until_quiet(self._plan.wait_quiet_s)
        if why_not is not None:
            self._notes.append(f"pass {self._plan.name}: {why_not}")

    def _measure(self) -> None:
        self._reporter.send(PhaseBegins(Phase.STARTING))
        gc.collect()
        gc.freeze()  # a collection that walks the model's objects in one iteration of ten would look like a slow layer
        self._collectors.start(self._order, self._step)
        self._need_its_collector()
        counters = self._collectors.counters()
        self._recorder.count_with(counters)
        if counters and self._plan.times_from is None:  # else the collector itself tells what it does not count
            self._recorder.watch_threads()
        self._record.event_sets = joint_sets([counter.event_sets() for counter in counters])
        warmup, sets = self._plan.warmup, len(self._record.event_sets)
        calls = self._recorder.layer_calls(warmup - 1, self._watch.leaves)
        pieces = self._extent.pieces(calls, sets)
        planned = next(pieces)
        self._watch.counts_alone = not all(one.layers_counted for one in planned if not one.bare)
        gc.freeze()  # the collectors' objects too; a collection now would run under those that slow the process down
        if self._plan.halts:
            signal.signal(signal.SIGINT, self._halt)
        self._reporter.send(PhaseBegins(Phase.MEASURING, self._steps(planned)))
        meanwhile = Meanwhile()
        self._extent.begin(meanwhile.begin_ns)
        try:
            for done, iteration in enumerate(self._one_by_one(planned, pieces)):
                if self._extent.is_over(done, len(planned)):
                    break
                if done:
                    self._collectors.between_iterations()
                if iteration.bare:
                    self._watch.rest()
                elif iteration.layers_counted:
                    self._watch.count()
                else:
                    self._watch.time_only()
                self._collectors.iteration_edge()
                self._iterate(iteration)
                self._collectors.iteration_edge()
                if not (self._plan.slow and iteration.layers_counted):
                    self._has_done(done + 1)
                if self._extent.is_by_precision and not (iteration.bare or iteration.layers_counted):
                    times_ns = self._recorder.own_times_ns(iteration.index, self._watch.leaves)
                    self._extent.add(times_ns, disturbed=is_disturbed(self._record.iterations[-1]))
        except Halted:
            self._interrupted = self._how_far(planned)
        if self._plan.halts:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self._turn.is_enough:
            done = len(self._record.iterations) - warmup
            of = f" of {len(planned)}" if self._plan.time_s is None and done < len(planned) else ""
            self._interrupted = f"after {done}{of} iterations"
        meanwhile.keep(self._record)
        self._record.precision = self._extent.precision()

    def _one_by_one(
        self, first: Sequence[IterationRecord], further: Iterator[Sequence[IterationRecord]]
    ) -> Iterator[IterationRecord]:
        done = 0
        for piece in chain([first], further):
            if done:
                self._reporter.send(Reached(done, done + len(piece)))
            yield from piece
            done += len(piece)

    def _halt(self, *_: object) -> None:
        """The user does not want to wait any longer."""
        if self._plan.slow:
            self._watch.halt(Halted())
        else:
            self._turn.is_enough = True

    def _need_its_collector(self) -> None:
        """A pass that is there for one collector is nothing without it. Raises ``HwprofError`` with its reason."""
        failed = [record for record in self._collectors.records if record.state == "failed"]
        if (self._plan.times_from is not None or self._plan.launcher) and failed:
            raise HwprofError(failed[0].reason or f"{failed[0].name} gives no reason", failed[0].remedy)

    def _iterate(self, iteration: IterationRecord, stage: Stages | None = None) -> None:
        """One iteration. What comes out is added up, if anyone asks for it, and given back behind it."""
        asked = iteration.index < self._plan.outputs
        outputs = self._outputs(timed=not asked or (self._plan.timed and not iteration.warmup))
        save_to = Path(self._order.save_to) if self._order.save_to else None
        self._record.iterations.append(iteration)
        own = self._collectors.own_processes()
        before = disturbance.read(own)
        began_s = self._clock()
        with self._recorder.iteration(iteration.index, warmup=iteration.warmup, event_set=iteration.event_set):
            self._workload.iterate(stage or self._recorder.stage, save_to, outputs.add)
            processes.end_copy(self._pid)
        found = disturbance.between(before, disturbance.read(own))
        self._shortest_s = min(self._shortest_s, self._clock() - began_s)
        shown = outputs.checksum() if asked else None
        self._record.iterations[-1] = msgspec.structs.replace(iteration, disturbance=found, outputs=shown)

    def _iterate_once_more(self, collector: str) -> None:
        """For a collector that looks when everything else is measured."""
        self._watch.time_only()
        iteration = IterationRecord(len(self._record.iterations), True, None, False, alone_for=collector)
        self._iterate(iteration, self._collectors.stages_of(collector, self._recorder.stage))

    def _step(self) -> None:
        self._reporter.send(Step())

    def _has_done(self, iterations: int) -> None:
        self._reporter.send(self._extent.reached(iterations) or Step())

    def _steps(self, planned: Sequence[IterationRecord]) -> int:
        """How many steps the iterations have: in a slow pass one a counted leaf call, as many as in the warm-up."""
        if not (self._plan.slow and self._plan.warmup):
            return len(planned)
        calls = self._recorder.layer_calls(self._plan.warmup - 1, self._watch.leaves)
        return sum(calls if iteration.layers_counted else 1 for iteration in planned)

    def _how_far(self, planned: Sequence[IterationRecord]) -> str:
        last = self._record.iterations[-1]
        done, of = (self._recorder.layer_calls(index, self._watch.leaves) for index in (last.index, 0))
        which = f" of iteration {last.index - self._plan.warmup + 1} of {len(planned)}" if len(planned) > 1 else ""
        return f"after {done} of {of} calls of leaf layers{which}"

    def _keep(self) -> None:
        os.umask(self._umask)  # whatever the model's code has made of it: nobody could read the files
        self._reporter.send(PhaseBegins(Phase.COLLECTING))
        collected = self._collectors.stop(self._iterate_once_more, self._is_hurried)
        self._watch.remove()
        self._recorder.close()
        if unseen := self._watch.unseen():
            told = f"{', '.join(unseen[:NAMED])}{' and others' if len(unseen) > NAMED else ''}"
            self._notes.append(
                f"pass {self._plan.name}: not all calls of {told} are seen: the model's code replaces them"
            )
        self._reporter.send(PhaseBegins(Phase.ADDING_UP))
        self._add_foreign_spans()
        if not self._order.describe:
            from hwprof.workload.giving_back import give_back

            give_back(self._workload.modules.values())
        from hwprof.run.directory import write_table
        from hwprof.session.pass_tables import gather

        folder = Path(self._order.folder)
        results = gather(self._record, self._recorder, self._collectors, collected, folder)
        self._need_its_collector()
        notes = self._notes
        described: dict[str, pl.DataFrame] = {}
        if self._order.describe:
            from hwprof.session.description import describe
            from hwprof.workload.changes import CODE

            self._reporter.send(PhaseBegins(Phase.DESCRIBING))
            self._take_back()
            other_code = not CODE.keys().isdisjoint(self._order.workload.changes)
            described, said = describe(
                self._workload, self._is_hurried, one_layer=other_code, in_any_order=bool(self._watch.stand_ins)
            )
            if self._added is not None:
                from hwprof.session.fused_layers import with_fused

                seen = self._recorder.added_paths()
                described["layers"] = with_fused(described["layers"], self._added.fused, seen, self._added.products)
            notes = [*notes, *said]
            processes.end_copy(self._pid)
        for name, frame in described.items():
            write_table(folder / f"{name}.parquet", name, frame)
        tables = [*results.write(folder), *described]
        self._reporter.send(Finished(self._record, tables, self._workload.results(), self._interrupted, notes=notes))

    def _add_foreign_spans(self) -> None:
        """Those of layers that PyTorch did not run."""
        stand_ins = self._watch.stand_ins
        if stand_ins:
            from hwprof.session import foreign_spans

            profiles = {prefix: stand_in.profiles() for prefix, stand_in in stand_ins.items()}
            self._added = foreign_spans.add(profiles, self._recorder, self._record)
            self._notes += self._added.notes if self._order.describe else []  # of the others it is the same


if __name__ == "__main__":
    processes.leave(main(sys.argv[1:]))
