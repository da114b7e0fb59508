"""Whether a collector keeps the contract: ``python -m hwprof.collector.conformance NAME``, or ``failures`` in a test.

An in-process collector is tried in a process of its own (the command's), on threads that do a little work; an external
one watches that process. Launchers are checked as far as that goes without their tool.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl

from hwprof import interrupts, processes
from hwprof.collector import registry
from hwprof.collector.contract import Collected, Collector, CountedSpan, Detail, Note, PassContext, counts_at_edges
from hwprof.collector.declaration import Declaration, OptionType, Place
from hwprof.errors import HwprofError, UsageError, described
from hwprof.interrupts import Interrupt
from hwprof.printable import one_line
from hwprof.run import details
from hwprof.run.details import as_json
from hwprof.run.manifest import CollectorRecord
from hwprof.run.schema import TABLES, conform

AVAILABILITY_S: Final = 5.0
"""More than a collector may take to say whether it works: it is asked in every run."""

PASS: Final = "conformance"


class ConformanceError(HwprofError):
    """What a collector does against the contract."""


def failures(name: str, options: Mapping[str, Any] | None = None) -> list[str]:
    """What the registered collector does against the contract; nothing where it keeps it. ``options``: further ones to
    start it with.

    Raises ``UsageError`` where none of that name is registered.
    """
    try:
        declared = registry.declaration(name)
    except UsageError:
        raise
    except Exception as error:  # a third party's code may fail in any way
        return [f"declaration: {_told(error)}"]
    found = []
    for check in (_declaration, _availability, _stop_without_start, _one_pass):
        try:
            check(declared, {**declared.defaults(), **(options or {})})
        except ConformanceError as error:
            found.append(str(error))
        except Interrupt:
            raise
        except BaseException as error:
            found.append(f"{check.__name__.strip('_')}: {_told(error)}")
    return found


def _told(error: BaseException) -> str:
    """In one line; hwprof's own errors say what to do in theirs."""
    return one_line(str(error) if isinstance(error, HwprofError) else described(error))


def _declaration(declared: Declaration, options: dict[str, Any]) -> None:
    """Its class fulfils the contract, and its options are what the command line can offer."""
    registry.implementation(declared)
    for option in declared.options:
        if not option.name.isidentifier() or not option.help:
            raise ConformanceError(f"option {option.name!r}: it needs a Python name, and a help text")
        if option.choices and option.default is not None and option.default not in option.choices:
            raise ConformanceError(f"option {option.name}: its default is none of its choices")
        if option.type is OptionType.INTEGER and not isinstance(option.default, int | None):
            raise ConformanceError(f"option {option.name}: its default is no integer")
    if msgspec.json.decode(msgspec.json.encode(options)) != options:
        raise ConformanceError("options do not come back from JSON as they were")


def _availability(declared: Declaration, options: dict[str, Any]) -> None:
    """It is cheap, leaves nothing behind, and says the same twice; a reason is one line."""
    descriptors, threads = _open_files(), threading.active_count()
    begun = time.process_time()
    first, second = (registry.create(declared.name).availability() for _ in range(2))
    if (took_s := time.process_time() - begun) > 2 * AVAILABILITY_S:
        raise ConformanceError(f"availability takes {took_s / 2:.1f} s of processor time")
    if (_open_files(), threading.active_count()) != (descriptors, threads):
        raise ConformanceError("availability leaves files or threads behind")
    if first.ok != second.ok or first.reason != second.reason:
        raise ConformanceError("availability says something else the second time")
    if not first.ok and not (first.reason or "").strip():
        raise ConformanceError("it is not available, and gives no reason")
    if first.reason is not None and "\n" in first.reason:
        raise ConformanceError("the reason has several lines")
    _reports(declared, Collected(notes=list(first.notes), detail=first.detail))


def _stop_without_start(declared: Declaration, options: dict[str, Any]) -> None:
    """Where it was never started, stopping hands over nothing, or says in so many words what was forgotten."""
    try:
        collected = registry.create(declared.name).stop()
    except (HwprofError, RuntimeError):
        return
    if any(not frame.is_empty() for frame in collected.tables.values()):
        raise ConformanceError("stop hands over rows without start")


def _one_pass(declared: Declaration, options: dict[str, Any]) -> None:
    """Start, a little work, stop: all that it hands over can be kept."""
    collector = registry.create(declared.name)
    if not collector.availability().ok or declared.place is Place.LAUNCHER:
        return
    with tempfile.TemporaryDirectory() as folder, _Work() as work:
        context = PassContext(PASS, os.getpid(), os.getpid(), Path(folder), options)
        try:
            collector.start(context)
        except HwprofError:
            collector.stop()  # gives back what it took
            return
        collector.work_begins()
        collector.iteration_edge()
        spans = _edges(collector, work)
        collector.iteration_edge()
        collector.between_iterations()
        collector.step()
        collector.work_ends()
        for _ in range(collector.own_iterations):
            with collector.own_iteration():
                work.do()
        collected = collector.stop()
        if spans:
            counted = {**collector.kernel_tables(spans), "counts": collector.counts(spans)}
            collected.tables = {**collected.tables, **counted}
            _sets(collector)
        _reports(declared, collected)
        _fits(collected)


def _edges(collector: Collector, work: _Work) -> list[CountedSpan]:
    """A counter's readers at the edges of two spans within an iteration."""
    if not counts_at_edges(collector):
        work.do()
        return []
    collector.begin_iteration(0)
    full, enter, leave, gap = (
        collector.full_reader(), collector.enter_reader(), collector.leave_reader(), collector.gap_reader()
    )  # fmt: skip
    for read in (full, enter, leave, gap, leave, full):
        read()
        work.do()
    return [CountedSpan(0, 0, 0, 5), CountedSpan(1, 0, 1, 2), CountedSpan(2, 0, 3, 4)]


def _sets(collector: Collector) -> None:
    sets = collector.event_sets()
    if not sets or not all(sets):
        raise ConformanceError("a counter that runs has at least one event set, and events in each")


def _reports(declared: Declaration, collected: Collected) -> None:
    """Notes and detail reach the manifest and come back."""
    if not all(isinstance(note, Note) for note in collected.notes):
        raise ConformanceError("a note is no hwprof.collector.contract.Note")
    if collected.detail is not None and not isinstance(collected.detail, Detail):
        raise ConformanceError("the detail is no hwprof.collector.contract.Detail")
    record = CollectorRecord(
        name=declared.name, state="ran", role=declared.role, notes=collected.notes, detail=as_json(collected.detail)
    )
    back = msgspec.json.decode(msgspec.json.encode(record), type=CollectorRecord)
    if back != record:
        raise ConformanceError("notes or detail do not come back from JSON as they were")
    if collected.detail is not None and back.detail_as(type(collected.detail)) != collected.detail:
        raise ConformanceError(f"{type(collected.detail).__name__} does not come back from JSON as it was")
    details.check(back.detail)
    if collected.detail is not None:
        _kind(type(collected.detail))


def _kind(of: type[Detail]) -> None:
    """Who asks for a kind gets what derives from it: by the tag, as JSON knows no classes."""
    for base in of.__mro__[1:]:
        if not issubclass(base, Detail) or base is Detail:
            continue
        if base.__struct_config__.tag != of.__struct_config__.tag:
            raise ConformanceError(f"{of.__name__} derives from {base.__name__}: it needs its tag")


def _fits(collected: Collected) -> None:
    """Rows fit the run's tables."""
    for table, frame in collected.tables.items():
        if table not in TABLES:
            raise ConformanceError(f"there is no table {table}: one of {', '.join(TABLES)}")
        if frame.is_empty():
            continue
        given = frame.with_columns(pl.lit(PASS).alias("pass"))
        if table == "spans":
            given = given.with_columns(span=pl.lit(0), iteration=pl.lit(0), warmup=pl.lit(False))
        conform(table, given)


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class _Work:
    """A thread beside the calling one, both with a little to do."""

    def __enter__(self) -> _Work:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ended.wait, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def do(self) -> None:
        """For 20 ms of processor time."""
        until = time.thread_time_ns() + 20_000_000
        while time.thread_time_ns() < until:
            sum(range(1000))


def main(names: list[str]) -> int:
    """Prints what each collector does against the contract; 1 where one does, 2 where there is none of a name."""
    status = 0
    for name in names or registry.names():
        try:
            found = failures(name)
        except HwprofError as error:
            print(f"hwprof: {one_line(str(error))}", file=sys.stderr)
            return error.exit_code
        print(f"{name}: {'conforms' if not found else 'does not conform'}")
        for failure in found:
            print(f"  {failure}")
            status = 1
    return status


if __name__ == "__main__":
    interrupts.tell_apart()
    processes.leave(main(sys.argv[1:]))  # a thread of the collector's may never end
