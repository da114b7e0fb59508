"""The child: one pass in a fresh process. ``python -m hwprof.session.worker ORDER.json FD``.

It does the workload under the inside collectors, writes the pass's tables as Parquet into the pass's folder, and tells
the supervisor about its progress on the file descriptor.
"""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hwprof.errors import HwprofError
from hwprof.run.directory import write_table
from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.session import messages
from hwprof.session.gather import RunningCollectors, gather
from hwprof.session.messages import Built, Failed, Finished, Message, Order, Phase, Step
from hwprof.session.plan import schedule
from hwprof.session.recorder import SpanRecorder


class Reporter:
    """Tells the supervisor; if it is gone, the worker ends at the next word."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, message: Message) -> None:
        """One message; raises ``BrokenPipeError`` when nobody listens."""
        data = messages.encode(message)
        while data:
            data = data[os.write(self._descriptor, data) :]


def main(arguments: Sequence[str]) -> int:
    """Carries out the order; every failure reaches the supervisor as one message."""
    reporter = Reporter(int(arguments[1]))
    try:
        _carry_out(Order.read(Path(arguments[0])), reporter)
    except BrokenPipeError:
        return 1
    except HwprofError as error:
        reporter.send(Failed(error.message, error.remedy, error.exit_code, None))
        return error.exit_code
    except MemoryError:
        reporter.send(Failed("not enough memory", "try a smaller --imgsz or --batch", 1, traceback.format_exc()))
        return 1
    except Exception as error:
        reporter.send(Failed(_one_line(error), None, 1, traceback.format_exc()))
        return 1
    return 0


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__


def _carry_out(order: Order, reporter: Reporter) -> None:
    plan = order.plan
    record = PassRecord(name=plan.name, pid=os.getpid(), main_tid=os.getpid(), environment=dict(plan.environment))
    recorder = SpanRecorder()
    reporter.send(Phase("importing torch"))
    with recorder.region("import"):
        import torch

        from hwprof.workload import factory, static
        from hwprof.workload.spans import LayerWatch
    if order.workload.threads:
        torch.set_num_threads(order.workload.threads)
    reporter.send(Phase("building the model"))
    with recorder.region("prepare"):
        workload = factory.build(order.workload)
        reporter.send(Built(workload.prepare(), _versions()))
    watch = LayerWatch(workload.modules, recorder)
    watch.time_only()
    record.begin_ns = time.monotonic_ns()
    save_to = Path(order.save_to) if order.save_to else None

    def iterate(iteration: IterationRecord) -> int:
        with recorder.iteration(iteration.index, warmup=iteration.warmup, event_set=iteration.event_set):
            cpu_ns = time.process_time_ns()
            workload.iterate(recorder.stage, save_to)
            cpu_ns = time.process_time_ns() - cpu_ns
        record.iterations.append(iteration)
        reporter.send(Step())
        return cpu_ns

    reporter.send(Phase("warming up", plan.warmup))
    for iteration in schedule(plan.warmup, 0, 0, alternate=False):
        iterate(iteration)
    if plan.idle_s:
        with recorder.region("idle"):
            time.sleep(plan.idle_s)
    collectors = RunningCollectors()
    reporter.send(Phase("starting collectors"))
    collectors.start(order)
    counters = collectors.counters()
    recorder.count_with(counters)
    sets = max((len(counter.event_sets()) for counter in counters), default=0)
    planned = schedule(plan.warmup, plan.iterations, sets, alternate=plan.alternate)[plan.warmup :]
    watch.counts_alone = not all(iteration.layers_counted for iteration in planned)
    gc.collect()
    gc.freeze()  # a collection that walks the model's objects in one iteration of ten would look like a slow layer
    reporter.send(Phase("measuring", plan.iterations))
    cpu_times: dict[int, int] = {}
    for iteration in planned:
        watch.count() if iteration.layers_counted else watch.time_only()
        cpu_times[iteration.index] = iterate(iteration)
    watch.remove()
    record.end_ns = time.monotonic_ns()
    reporter.send(Phase("gathering"))
    tables = gather(record, recorder, collectors, cpu_times)
    if order.describe:  # last, as counting MACs leaves traces in the process that a measurement should not see
        reporter.send(Phase("describing layers", None))
        tables["layers"] = static.describe_layers(workload)
    for name, frame in tables.items():
        write_table(Path(order.folder) / f"{name}.parquet", name, frame)
    reporter.send(Finished(record, list(tables), workload.results()))


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("torch", "ultralytics", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a library's exit handlers must not undo or delay what is written
