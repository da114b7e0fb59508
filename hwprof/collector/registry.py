"""Which collectors there are: whatever is registered under the entry points ``hwprof.collectors``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final

from hwprof import processes
from hwprof.collector.declaration import Declaration, Place
from hwprof.errors import HwprofError, UsageError, described
from hwprof.interrupts import Interrupt
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:  # the command line lists collectors without their code
    from hwprof.collector.contract import Availability, Collector
    from hwprof.run.manifest import MetricDefinition

GROUP: Final = "hwprof.collectors"


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def names() -> list[str]:
    """The registered collectors; nothing is imported for it. One whose name is none can be neither chosen nor left out,
    so that it is none of them; ``survey`` tells of it."""
    return [name for name in _entry_points() if _is_name(name)]


def _is_name(name: str) -> bool:
    """Whether it can be a word of options, tables and folders."""
    return name.isascii() and name.isidentifier()


@contextmanager
def _going_on() -> Iterator[None]:
    """A third party's code fails like any other where it ends the process, or raises what is no ``Exception``; a copy
    that it makes of the process ends with it."""
    original = os.getpid()
    try:
        yield
    except (Exception, Interrupt):
        raise
    except SystemExit as error:
        raise HwprofError(f"its code calls sys.exit({error.code!r})") from error
    except BaseException as error:
        raise HwprofError(f"its code raises {described(error)}") from error
    finally:
        processes.end_copy(original)


@cache
def declaration(name: str) -> Declaration:
    """What is known of a collector; raises ``UsageError`` for an unknown name, and whatever a broken one raises."""
    entry = _entry_points().get(name)
    if entry is None:
        raise UsageError(f"no collector is called {name!r}", f"one of {', '.join(names())}")
    if not _is_name(name):
        raise HwprofError(f"{name!r} is no name", "register it as letters, digits and underscores: my_collector")
    with _going_on():
        declared = entry.load()
    if not isinstance(declared, Declaration):
        raise HwprofError(f"{entry.value} is no declaration", "register a hwprof.collector.declaration.Declaration")
    if declared.name != name:
        raise HwprofError(f"the collector {declared.name} is registered as {name}", "give both the same name")
    return declared


@cache
def declarations() -> list[Declaration]:
    """All that can be read; a broken one costs nobody else anything, and ``survey`` says what is wrong with it."""
    found = []
    for name in names():
        try:
            found.append(declaration(name))
        except Exception:  # a third party's code may fail in any way
            continue
    return found


def create(name: str) -> Collector:
    """A new instance; raises ``UsageError`` for an unknown name, and whatever a broken collector raises."""
    kind = implementation(declaration(name))
    with _going_on():
        return kind()


@cache
def implementation(declared: Declaration) -> type[Collector]:
    """The class, checked. Raises ``ContractError`` where it breaks the contract."""
    from hwprof.collector import registration

    module, _, name = declared.implementation.partition(":")
    with _going_on():
        found = getattr(import_module(module), name, None)
    return registration.check(declared, found)


def metrics() -> dict[str, Sequence[MetricDefinition]]:
    """By collector: the metrics that it can bring, of those that declare them. Nothing is measured for it; a third
    party's that cannot be read are left out."""
    found: dict[str, Sequence[MetricDefinition]] = {}
    for declared in declarations():
        module, _, function = (declared.metrics or "").partition(":")
        if function:
            with suppress(Exception), _going_on():
                found[declared.name] = list(getattr(import_module(module), function)())
    return found


@dataclass(frozen=True)
class Surveyed:
    """A collector and whether it works here."""

    declaration: Declaration
    collector: Collector | None  # None: it could not even be made
    availability: Availability

    @property
    def name(self) -> str:
        """The collector's."""
        return self.declaration.name

    def not_here(self) -> HwprofError:
        """The error where it was asked for by name and does not work."""
        why = self.availability.unavailable
        reason, remedy = (why.reason, why.remedy) if why is not None else ("no reason given", None)
        return HwprofError(f"{self.name} does not work here: {reason}", remedy)


def _availability(collector: Collector) -> Availability:
    """What it says, if it is something that a manifest and a diagnosis can hold; raises an error where it is not."""
    import msgspec

    from hwprof.collector.contract import Availability, Note, Tool
    from hwprof.run.details import as_json

    said: object = collector.availability()
    if not isinstance(said, Availability):
        raise HwprofError(f"availability() returns {type(said).__name__}, no Availability")
    plain: list[tuple[object, Any]] = [
        (said.unavailable, Unavailable | None),
        (list(said.notes), list[Note]),
        (said.lacks, str | None),
        (as_json(said.detail), dict[str, Any]),
        (list(said.tools), list[Tool]),
    ]
    for value, kind in plain:
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    return said


def survey(chosen: Iterable[str] | None = None) -> list[Surveyed]:
    """Every collector (or the chosen ones) with its availability, preferred ones first and fallbacks last; a broken one
    is unavailable, with its error. Raises ``HwprofError`` where there are none: only an installation registers them."""
    from hwprof.collector.contract import Availability

    if not _entry_points():
        raise HwprofError("no collector is registered: hwprof runs from its source, not installed", "pip install -e .")
    found = []
    for name in _entry_points() if chosen is None else chosen:
        declared = Declaration(name=name, summary="", implementation="", place=Place.EXTERNAL)
        try:
            declared = declaration(name)
            collector = create(name)
            with _going_on():
                found.append(Surveyed(declared, collector, _availability(collector)))
        except UsageError:
            raise
        except HwprofError as error:
            found.append(Surveyed(declared, None, Availability.no(f"it is broken: {error.message}", error.remedy)))
        except Exception as error:  # a third party's collector may fail in any way; the rest goes on without it
            found.append(Surveyed(declared, None, Availability.no(f"it is broken: {described(error)}")))
    return sorted(found, key=lambda one: (not one.declaration.preferred, one.declaration.fallback))
