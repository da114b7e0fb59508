"""A pass as its supervisor carries it out: its worker, with the external collectors, and what they bring."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.processes import perf_map_of
from hwprof.run.atomic import remove_parts
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.session import interruption
from hwprof.session.external import ExternalCollectors
from hwprof.session.fork_server import ForkServer
from hwprof.session.held_worker import HeldWorker
from hwprof.session.kept_pass import keep
from hwprof.session.launcher import Launching
from hwprof.session.messages import Built, Failed, Finished, Message, Order, Phase, PhaseBegins, Reached, Step
from hwprof.session.outputs import compare, uninstrumented
from hwprof.session.pass_record import PassError, recorded
from hwprof.session.plan import PassPlan
from hwprof.session.prediction import prediction
from hwprof.session.progress import Progress
from hwprof.session.stopped_worker import StoppedWorker
from hwprof.session.time_limit import TimeLimit
from hwprof.session.worker_process import WorkerProcess
from hwprof.workload.runtimes.temporary import remove_exported
from hwprof.workload.spec import WorkloadSpec

LOG_FILE: Final = "worker.log"
ORDER_FILE: Final = "order.json"
ALONE: Final = "the model without hwprof: it may end alike"
"""Where a worker that died has left no word."""

SMALL_MODEL: Final = 1 << 28
"""So many parameters, a gigabyte of them, may be there twice."""

PREDICTED: Final = frozenset(Phase) - {Phase.ADDING_UP, Phase.READING, Phase.HALTING, Phase.KEEPING}
"""The phases in which the user is told how long the pass takes."""


def nothing() -> None:
    """Where there is nothing to be done when a pass measures no more."""


@dataclass(frozen=True)
class Means:
    """What every pass of a run has."""

    run: RunDirectory
    workload: WorkloadSpec
    progress: Progress
    server: ForkServer | None
    weights: int
    """A descriptor that the passes share."""


class Pass:
    """One pass, from the start of its worker until its rows are kept."""

    def __init__(self, means: Means, plan: PassPlan, *, first: bool, held: interruption.Held | None = None) -> None:
        """``held``: that of the pass that it is a part of."""
        self.plan = plan
        self._means = means
        self._run = means.run
        self._progress = means.progress
        self._folder = self._run.path / "raw" / plan.name
        images = self._run.path / "images"
        threads = means.workload.threads if plan.threads is None else plan.threads
        self._order = Order(
            workload=msgspec.structs.replace(means.workload, threads=threads),
            plan=plan,
            folder=str(self._folder),
            describe=first,
            save_to=str(images) if first else None,
        )
        self._started: tuple[WorkerProcess, Launching] | None = None
        self._when_measured = nothing
        self._external: ExternalCollectors | None = None
        self._finished: Finished | None = None
        self._measuring = False
        self._halting = False
        self._held = held or interruption.Held(partial(self._progress.tell, plan.name), hurry=self._hurry)
        self._asked = "interrupted by the user"
        self._predicted = ""

    def prepare(self) -> None:
        """Starts the worker before its turn, while the one of the pass before still has its model: not where the memory
        may be too small for two of them. Where nobody takes its times, nor watches it, it need not wait for its turn:
        the other one only adds up by now."""
        workload = self._run.manifest.workload
        if workload is not None and workload.parameters is not None and workload.parameters <= SMALL_MODEL:
            with suppress(OSError, HwprofError):  # in its turn it fails again, and is recorded
                worker, _ = self._start()
                if self.plan.slow and not self.plan.external:
                    worker.go_on()

    def end(self) -> None:
        """Ends the worker, if there is one still, and takes away what it could not: once, for its number may be given
        to another process."""
        if self._started is not None:
            (worker, launching), self._started = self._started, None
            worker.end()
            launching.clean_up(worker.pid)
            remove_parts(self._folder)
            remove_exported(self._folder)
            with suppress(OSError):
                perf_map_of(worker.pid).unlink(missing_ok=True)

    def give_room(self) -> None:
        """Takes away what a pass that failed has written, but for its order and its log: nobody reads it."""
        self.end()
        for left in self._folder.rglob("*"):
            if left.name not in (ORDER_FILE, LOG_FILE) and left.is_file() and not left.is_symlink():
                with suppress(OSError):
                    os.truncate(left, 0)  # a collector that failed may have it open, and so keep the room it takes
                    left.unlink()

    def _start(self) -> tuple[WorkerProcess, Launching]:
        """Raises ``OSError`` and ``HwprofError``."""
        if self._started is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._order.save_to:
                Path(self._order.save_to).mkdir(exist_ok=True)
            self._order.after(self._run.manifest.workload).write(self._folder / ORDER_FILE)
            launching = Launching(self.plan, self._folder)
            worker = WorkerProcess(
                self._folder / ORDER_FILE,
                self._folder / LOG_FILE,
                server=self._means.server,
                launcher=launching.command(),
                environment=self.plan.environment,
                # calibration also warms the process up; without a warm-up of its own, a pass keeps that
                weights=self._means.weights if self.plan.warmup else None,
            )
            self._started = (worker, launching)
        return self._started

    @property
    def interrupted(self) -> bool:
        """Whether the end was asked for when all was measured: it is complete, and nothing shall follow."""
        return self._held.came

    def _hurry(self) -> None:
        """By a signal's handler, wherever it comes: all is measured, and what the worker still does takes long."""
        if (started := self._started) is not None:
            started[0].hurry()

    def heed(self) -> None:
        """Raises what asked for the end, if anything did."""
        self._held.heed()

    def carry_out(self, record: PassRecord, when_measured: Callable[[], None]) -> None:
        """All of it. ``when_measured`` is called when it measures no more, and only adds up and writes. What asks for
        the end from then on is to be heeded (``heed``) when the pass is kept."""
        try:
            self._carry_out(record, when_measured)
        finally:
            self._held.end()

    def _carry_out(self, record: PassRecord, when_measured: Callable[[], None]) -> None:
        self._predicted = prediction(self._run, self.plan)
        self._when_measured = when_measured
        self._begin(Phase.IMPORTING)
        if self._started is not None and self._started[0].has_ended():
            self.end()  # before its turn: another one may do better
        worker, launching = self._start()
        self._external = external = ExternalCollectors(self.plan, self._folder, worker.pid)
        option = self.plan.limit_option
        remedy = f"more time: {option} SECONDS" if option is not None else None
        limit = TimeLimit(self.plan.limit_s, self.plan.silence_s, worker.pid, remedy)
        stopped = StoppedWorker(worker.pid, partial(self._progress.tell, self.plan.name))
        try:
            worker.go_on()
            with limit, HeldWorker(worker.pid), stopped:
                self._listen(worker, limit)
                worker.wait_for_end()
            status = worker.wait()
        finally:
            worker.end()
            self._note(worker, stopped)
            collected = external.stop()
        if limit.reason is not None:
            raise PassError(limit.reason, limit.remedy, 1, foreseen=True)
        if self._finished is None:
            self.heed()
            raise KeyboardInterrupt if self._halting else self._died(worker, status)
        if self.plan.launcher:
            self._begin(Phase.READING)
        collected += launching.collect_results(worker.pid, self._finished.record.collectors)
        if not self._halting:
            self._compare_outputs(self._finished.record)
        self._begin(Phase.KEEPING)
        failed = [*external.records, *launching.records, *self.plan.left_out]
        keep(self._run, self._folder, record, self._finished, collected, failed)
        if self.interrupted and self._finished.interrupted:
            record.reason = f"{self._asked} {self._finished.interrupted}"
        if self._halting:
            record.kept = True
            record.reason = f"{self._asked} {self._finished.interrupted or 'when all was counted'}"
            self.heed()
            raise KeyboardInterrupt

    def _note(self, worker: WorkerProcess, stopped: StoppedWorker) -> None:
        """What a reader of the pass's figures, or of its log, must know of how its worker fared."""
        said = []
        if worker.log.dropped_bytes:
            said.append(
                f"{worker.log.dropped} were dropped from {(self._folder / LOG_FILE).relative_to(self._run.path)}"
            )
        if stopped.stopped_s:
            said.append(f"its worker was stopped (SIGSTOP) for {stopped.stopped_s:.0f} s")
        if (workload := self._run.manifest.workload) is not None:
            workload.notes += [f"pass {self.plan.name}: {text}" for text in said]

    def _compare_outputs(self, finished: PassRecord) -> None:
        """With those of the pass that did the same work. Raises ``OutputsDifferError``, and what a pass may raise."""
        if self.plan.times_from is not None and self.plan.outputs:
            companion = self._run.find_pass(self.plan.times_from)
            compare(finished, companion, lambda: self._carry_out_too(uninstrumented(self.plan, companion)))

    def _carry_out_too(self, plan: PassPlan) -> PassRecord:
        one = Pass(self._means, plan, first=False, held=self._held)  # what has come is not to be held once more
        try:
            with recorded(self._run, plan) as record:
                one._carry_out(record, nothing)
        finally:
            one.end()
        return record

    def _listen(self, worker: WorkerProcess, limit: TimeLimit) -> None:
        """Hears the worker to its last word. The first Ctrl-C tells one that measures to come to an end, with the
        iterations done so far, with which its pass is complete, or with the layers of a slow one; the second one ends
        it. So does a signal that ends a process, which comes a second time by itself."""
        while True:
            try:
                while self._finished is None and (message := worker.inbox.next()) is not None:
                    limit.heard()
                    self._hear(message)
                return
            except KeyboardInterrupt as interrupt:
                asked_before = self._halting or self.interrupted
                if not (self._measuring and self.plan.halts) or asked_before:
                    raise
                self._asked = str(interrupt) or self._asked
                worker.interrupt()
                if self.plan.slow:
                    self._halting = True
                    self._begin(Phase.HALTING)
                if not self.plan.slow or isinstance(interrupt, interruption.EndedBySignal):
                    self._held.take(interrupt)

    def _hear(self, message: Message) -> None:
        if self._external is not None:
            self._external.hear(message)
        if isinstance(message, PhaseBegins):
            self._measuring = message.phase is Phase.MEASURING
            if message.phase is Phase.COLLECTING and not self._halting:
                self._held.begin()
            self._begin(message.phase, message.total)
            if message.phase is Phase.ADDING_UP and not (self._halting or self.interrupted):
                self._when_measured()
        elif isinstance(message, Reached):
            self._progress.reached(message.done, message.total)
        elif isinstance(message, Step):
            self._progress.step()
        elif isinstance(message, Built):
            if self._run.manifest.workload is None:
                self._run.manifest.workload = message.workload
                self._run.manifest.versions |= message.versions
                self._run.save_manifest()
        elif isinstance(message, Finished):
            self._finished = message
        else:
            self._refuse(message)

    def _begin(self, phase: Phase, total: int | None = None) -> None:
        further = self._predicted if phase in PREDICTED else ""
        if self._held.came:
            further = ": what is measured is kept; Ctrl-C again: not even that"
        self._progress.phase(self.plan.name, f"{phase.value}{further}", total)

    def _refuse(self, message: Failed) -> None:
        if message.trace is not None and self._started is not None:
            self._started[0].log.append(message.trace)
        remedy = message.remedy
        if message.trace is not None and remedy is None:
            remedy = f"see {self._folder / LOG_FILE}"
        error = PassError(message.message, remedy, message.exit_code, foreseen=message.trace is None)
        error.trace = message.trace or message.foreseen_trace
        raise error

    def _died(self, worker: WorkerProcess, status: int) -> PassError:
        how = interruption.how_it_ended(status)
        if status < 0 and worker.orphaned:
            how = f"by {interruption.name_of(-status)}, with the process that it was a copy of"
        log = self._folder / LOG_FILE
        says_more = log.exists() and log.stat().st_size > 0
        remedy = f"see {log}" if says_more else ALONE
        return PassError(f"the worker of pass {self.plan.name} ended {how}", remedy, 1, foreseen=not says_more)
