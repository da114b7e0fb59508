"""What is known of a collector before any of its code is imported: what it measures, where it sits, its options.

The entry points of the group ``hwprof.collectors`` lead to declarations. The command line reads all of them for its
help, so a module with a declaration imports nothing but this one, and the names of passes and roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from hwprof.run.passes import SHARED_PASSES
from hwprof.run.roles import Role


class Place(Enum):
    """Where a collector sits."""

    IN_PROCESS = "in-process"  # in the worker
    EXTERNAL = "external"  # in the supervisor, watching the worker's pid
    LAUNCHER = "launcher"  # its tool launches the worker


class OptionType(Enum):
    """What an option's value is."""

    TEXT = "text"  # a str
    INTEGER = "integer"  # an int
    FLAG = "flag"  # True where it is given
    PASSES = "passes"  # the passes in which the collector runs, instead of those of its declaration


@dataclass(frozen=True)
class Option:
    """An option of ``hwprof collect`` that belongs to a collector. Given or not, its value is in the manifest."""

    name: str  # in Python: "sample_passes" is --sample-passes, and the key in ``PassContext.options``
    help: str  # a sentence or two
    type: OptionType = OptionType.TEXT
    metavar: str | None = None
    default: str | int | None = None  # None: the key is missing from the options, and the collector decides
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    asks: bool = False  # who gives it asks for this collector: a counter, as with --counters, or one on demand

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A collector as the rest of hwprof knows it."""

    name: str  # the entry point's; in Python: "torch_profiler"
    summary: str  # one line: what it can tell
    implementation: str  # "package.module:Class", imported when it is needed
    place: Place
    role: Role = Role.OTHER
    passes: frozenset[str] = frozenset(SHARED_PASSES)  # in which it runs
    on_demand: bool = False  # it runs only where --collectors names it, or one of its options that ``asks`` is given
    own_passes: bool = False  # it cannot share a pass: its ``passes`` are there for it alone, where it was asked for
    preferred: bool = False  # of counters: the one that ``--counters auto`` stands for
    fallback: bool = False  # of counters: ``auto`` adds it where the preferred one lacks something on this machine
    metrics: str | None = None  # "package.module:function": the metrics that it can bring, for `hwprof explain`
    wants_idle: bool = False  # the machine should rest for a moment before the first iteration
    full: tuple[tuple[str, Any], ...] | None = None  # its options where --full asks for all; None: no part of it
    options: tuple[Option, ...] = ()

    def defaults(self) -> Mapping[str, Any]:
        """The options that have a value if they are not given."""
        return {option.name: option.default for option in self.options if option.default is not None}
