"""The parent: starts a fresh worker for each pass, with the external collectors, and keeps what they bring."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import msgspec
import polars as pl

from hwprof.collector.contract import Collected
from hwprof.errors import FullDiskError, HwprofError, is_full_disk
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CollectorRecord, PassRecord
from hwprof.session.external import ExternalCollectors
from hwprof.session.failure import failure
from hwprof.session.launcher import Launching
from hwprof.session.messages import Built, Failed, Finished, Inbox, Message, Order, Phase, PhaseBegins, Step
from hwprof.session.plan import CollectorPlan, PassPlan
from hwprof.session.prediction import prediction
from hwprof.session.results import PassResults
from hwprof.workload.spec import WorkloadSpec

KILL_AFTER_S: Final = 3.0
LOG_FILE: Final = "worker.log"
ORDER_FILE: Final = "order.json"
PREDICTED: Final = frozenset(Phase) - {Phase.READING, Phase.HALTING, Phase.KEEPING}
"""The phases in which the user is told how long the pass takes."""

PLANNED: Final = ("environment", "threads", "instruction_set", "times_from")
"""The fields of a pass's record that its plan fills in."""


class Progress(Protocol):
    """Who is told what is going on."""

    def phase(self, pass_name: str, text: str, total: int | None) -> None:
        """Another phase of a pass begins; ``total`` steps are expected where that is known."""
        ...

    def step(self) -> None:
        """One step of the phase is done."""
        ...


class PassError(HwprofError):
    """A worker gave up or died. ``foreseen``: it said why in words meant for the user."""

    def __init__(self, message: str, remedy: str | None, exit_code: int, *, foreseen: bool) -> None:
        super().__init__(message, remedy)
        self.exit_code = exit_code
        self.foreseen = foreseen


def carry_out(run: RunDirectory, workload: WorkloadSpec, plans: Sequence[PassPlan], progress: Progress) -> None:
    """Does every pass in turn and keeps each in ``run``.

    Raises ``PassError`` at the first pass that fails (at the end, where the run can go on without it; not at all, where
    nobody asked for it: its record tells), and ``KeyboardInterrupt``; the passes done by then are kept.
    """
    failure: PassError | None = None
    with tempfile.TemporaryFile(dir=run.path) as weights:  # it has no name, and is gone with the last process
        for number, plan in enumerate(plans):
            try:
                with _recorded(run, plan) as record:
                    _Pass(run, workload, plan, record, progress, weights.fileno(), first=number == 0).carry_out()
            except PassError as error:
                if not plan.may_fail:
                    raise
                failure = failure or (error if plan.asked else None)
    if failure is not None:
        raise failure


@contextmanager
def _recorded(run: RunDirectory, plan: PassPlan) -> Iterator[PassRecord]:
    """The pass's record in the manifest: running, then how it ended."""
    record = PassRecord(name=plan.name, **{name: getattr(plan, name) for name in PLANNED})
    run.manifest.passes.append(record)
    try:
        run.save_manifest()
        yield record
    except KeyboardInterrupt:
        _end(run, record, "interrupted", record.reason or "interrupted by the user")
        raise
    except PassError as error:
        _end(run, record, "failed", str(error))
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        _end(run, record, "failed", str(error))
        raise _cannot_write(run, error) from error
    else:
        record.status = "completed"
        run.save_manifest()


def _end(run: RunDirectory, record: PassRecord, status: str, reason: str) -> None:
    record.status = "interrupted" if status == "interrupted" else "failed"
    record.reason = reason
    try:
        run.save_manifest()
    except OSError:
        return  # a full disk: the manifest on it says "running", which reads as not completed as well


def _cannot_write(run: RunDirectory, error: Exception) -> PassError:
    if is_full_disk(error):
        full = FullDiskError(str(run.path))
        return PassError(full.message, full.remedy, full.exit_code, foreseen=True)
    return PassError(f"cannot write to {run.path}: {error}", None, 1, foreseen=True)


class _Pass:
    """One pass while it is carried out."""

    def __init__(
        self,
        run: RunDirectory,
        workload: WorkloadSpec,
        plan: PassPlan,
        record: PassRecord,
        progress: Progress,
        weights_descriptor: int,
        *,
        first: bool,
    ) -> None:
        self._run = run
        self._plan = plan
        self._record = record
        self._progress = progress
        self._folder = run.path / "raw" / plan.name
        images = run.path / "images"
        threads = workload.threads if plan.threads is None else plan.threads
        self._order = Order(
            workload=msgspec.structs.replace(workload, threads=threads),
            plan=plan,
            folder=str(self._folder),
            describe=first,
            save_to=str(images) if first else None,
            # calibration also warms the process up; without a warm-up of its own, a pass keeps that
            weights_descriptor=weights_descriptor if plan.warmup else None,
        )
        self._inherited = (weights_descriptor,) if plan.warmup else ()
        self._external: ExternalCollectors | None = None
        self._finished: Finished | None = None
        self._halting = False
        self._predicted = prediction(run, plan)

    def carry_out(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._order.save_to:
            Path(self._order.save_to).mkdir(exist_ok=True)
        order_file = self._folder / ORDER_FILE
        self._order.write(order_file)
        launching = Launching(self._plan, self._folder)
        read_end, write_end = os.pipe()
        worker_command = [sys.executable, "-m", "hwprof.session.worker", str(order_file), str(write_end)]
        with (self._folder / LOG_FILE).open("wb") as log:
            worker = subprocess.Popen(
                [*launching.command(), *worker_command],
                env=os.environ | self._plan.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(write_end, *self._inherited),
                start_new_session=True,  # Ctrl-C is the supervisor's to handle
            )
        os.close(write_end)
        self._external = external = ExternalCollectors(self._plan, self._folder, worker.pid)
        try:
            self._listen(Inbox(read_end), worker)
            status = worker.wait()
        finally:
            os.close(read_end)
            _end_process(worker)
            collected = external.stop()
        if self._finished is None:
            raise KeyboardInterrupt if self._halting else self._died(status)
        if self._plan.launcher:
            self._begin(Phase.READING)
        collected += launching.collect_results(worker.pid, self._finished.record.collectors)
        self._keep(self._finished, collected, [*external.records, *launching.records])
        if self._halting:
            self._record.kept = True
            self._record.reason = f"interrupted by the user {self._finished.interrupted or 'when all was counted'}"
            raise KeyboardInterrupt

    def _listen(self, inbox: Inbox, worker: subprocess.Popen[bytes]) -> None:
        """Hears the worker to its end. The first Ctrl-C tells that of a slow pass to come to one, with the layers done
        so far; the second one ends it."""
        while True:
            try:
                while (message := inbox.next()) is not None:
                    self._hear(message)
                return
            except KeyboardInterrupt:
                if not self._plan.slow or self._halting:
                    raise
                self._halting = True
                worker.send_signal(signal.SIGINT)
                self._begin(Phase.HALTING)

    def _hear(self, message: Message) -> None:
        if self._external is not None:
            self._external.hear(message)
        if isinstance(message, PhaseBegins):
            self._begin(message.phase, message.total)
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
        predicted = self._predicted if phase in PREDICTED else ""
        self._progress.phase(self._plan.name, f"{phase.value}{predicted}", total)

    def _refuse(self, message: Failed) -> None:
        if message.trace is not None:
            with (self._folder / LOG_FILE).open("a") as log:
                log.write(message.trace)
        remedy = message.remedy
        if message.trace is not None and remedy is None:
            remedy = f"see {self._folder / LOG_FILE}"
        raise PassError(message.message, remedy, message.exit_code, foreseen=message.trace is None)

    def _died(self, status: int) -> PassError:
        how = f"with exit code {status}"
        if status < 0:
            how = f"by {signal.Signals(-status).name}"
            if -status == signal.SIGKILL:
                how += ", as the kernel does when memory runs out"
        log = self._folder / LOG_FILE
        return PassError(f"the worker of pass {self._plan.name} ended {how}", f"see {log}", 1, foreseen=False)

    def _keep(
        self,
        finished: Finished,
        collected: Sequence[tuple[CollectorPlan, Collected]],
        failed: Sequence[CollectorRecord],
    ) -> None:
        """The pass's rows go into the run's tables, its record into the manifest."""
        self._begin(Phase.KEEPING)
        results = PassResults(finished.record, lambda: pl.read_parquet(self._folder / "spans.parquet"))
        for planned, result in collected:
            try:
                results.keep(planned, result)
            except Exception as error:  # whatever a collector does wrong costs its own data only
                finished.record.collectors.append(failure(planned, error))
        rows = results.tables()
        for table in finished.tables:
            part = self._folder / f"{table}.parquet"
            self._run.append(table, part)
            part.unlink()
        for table, frame in rows.items():
            part = self._folder / f"outside-{table}.parquet"
            write_table(part, table, frame)
            self._run.append(table, part)
            part.unlink()
        for name in msgspec.structs.fields(PassRecord):
            if name.name not in ("name", "status", "reason", *PLANNED):
                setattr(self._record, name.name, getattr(finished.record, name.name))
        self._record.collectors += [*failed, *self._plan.left_out]
        if self._run.manifest.workload is not None and finished.results:
            self._run.manifest.workload.results = finished.results


def _end_process(worker: subprocess.Popen[bytes]) -> None:
    """Ends the worker and whatever it started, kindly at first."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if worker.poll() is not None:
            return
        try:
            os.killpg(worker.pid, how)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + KILL_AFTER_S
        while worker.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
