"""Derived metrics: their definitions, and their evaluation.

A definition's formula is checked when it is read, once (``formulas``); it is an expression of polars from then on.

What follows from hardware counters depends on the processor, so those definitions come with the pass, made on the
machine that measured. What needs none is the same everywhere (``hardware.metrics.independent``).

A metric is computed within each iteration that counted all of its events, and the median of those values is what is
shown: numerator and denominator are of the same work. Only where no iteration counted all of them together, it is made
of the events' own medians, and ``Evaluated.across_iterations`` says so. A metric whose operand was not counted is
null, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import polars as pl

from hwprof.analysis import uncore
from hwprof.analysis.formulas import expression
from hwprof.errors import HwprofError
from hwprof.hardware.metrics import GIVEN_OPERANDS, MODELLED_OPERANDS, independent, sampled, vocabulary
from hwprof.hardware.metrics import operands as named_operands
from hwprof.hardware.selection import DEFAULT, select
from hwprof.run.manifest import CoreKind, Machine, MetricDefinition, PassRecord

CLOCKED: Final = frozenset({"time", "counted-time"})
"""Operands that the clock tells."""

OF_ALL_THREADS: Final = frozenset({"time", "threads"})
"""Operands of which a thread has no part: formulas with one of them cannot be told by thread."""

THREAD_PARTS: Final = ("main", "workers")
NOT_DEFINED: Final = "NULL"
"""The formula of a metric that every report shows and that nothing on that machine tells."""

_NO_DEVICES: Final = Path("/nonexistent")
"""A machine that is only known by its description has no sysfs to look into."""

_ON_KIND: Final = re.compile(r"^[^/]+/([^/]+)/$")


def definitions(
    record: PassRecord | None, machine: Machine, joined: PassRecord | None = None
) -> tuple[MetricDefinition, ...]:
    """The metrics of a pass in order of presentation: from counters, then those that need none.

    Where the pass has no definitions (no counter collector ran), the processor's own show what is missing. ``joined``:
    a pass of the same work whose counts are at hand as well; its definitions take the place of those that this pass's
    counters cannot tell. Raises ``HwprofError`` where a kept formula is none.
    """
    records = [found for found in (record, joined) if found is not None]
    for kept in (definition for found in records for definition in found.metrics):
        compiled(kept)
    events = {info.name for found in records for info in found.events}
    own = (record.metrics if record is not None else []) or of_machine(machine)
    found: dict[str, MetricDefinition] = {}
    further = (*joined.metrics, *sampled()) if joined is not None else ()
    others = [over_kinds(definition, events) for definition in further]
    for definition in (*own, *others):
        known = found.get(definition.name)
        if known is None or (not events.issuperset(events_of(known)) and events.issuperset(events_of(definition))):
            found[definition.name] = definition
    for name in vocabulary():
        if name.core and name.name not in found:
            found[name.name] = name.defined(NOT_DEFINED)
    found |= {definition.name: definition for definition in uncore.definitions()}  # no thread's counts tell them
    order = {name.name: number for number, name in enumerate(vocabulary())}
    counted = sorted(found.values(), key=lambda definition: order.get(definition.name, len(order)))
    rest = [over_kinds(definition, events) for definition in independent() if definition.name not in found]
    return (*counted, *rest)


def of_machine(machine: Machine) -> tuple[MetricDefinition, ...]:
    """The default metrics that such a machine's counters would give."""
    if not machine.cores:
        machine = msgspec.structs.replace(machine, cores=(CoreKind(None, None, ()),))
    return select([DEFAULT], machine, _NO_DEVICES, ()).metrics


def over_kinds(definition: MetricDefinition, events: Iterable[str]) -> MetricDefinition:
    """On hybrids, where every kind of core counts ``instructions`` under a name of its own: their sum."""
    kinds: dict[str, list[str]] = {}
    for event in events:
        if match := _ON_KIND.match(event):
            kinds.setdefault(match[1], []).append(event)
    replaced = {}
    for operand in operands_of(definition):
        event, _, part = operand.partition("@")
        if event in kinds and is_event(event):
            parts = [f'"{name}{f"@{part}" if part else ""}"' for name in sorted(kinds[event])]
            replaced[operand] = f"({' + '.join(parts)})"
    return _replace(definition, definition.name, replaced) if replaced else definition


def by_thread(definition: MetricDefinition) -> tuple[MetricDefinition, ...]:
    """The metric of the calling thread and of the others, as ``NAME@main`` and ``NAME@workers``; none where the formula
    has no parts by thread."""
    operands = operands_of(definition)
    events = [name for name in operands if is_event(name)]
    if not events or OF_ALL_THREADS.intersection(operands) or any("@" in name for name in events):
        return ()
    return tuple(
        _replace(definition, f"{definition.name}@{part}", {name: f'"{name}@{part}"' for name in events})
        for part in THREAD_PARTS
    )


def with_threads(metrics: Sequence[MetricDefinition]) -> tuple[MetricDefinition, ...]:
    """The metrics, and those that can be told by thread once more for each part."""
    return (*metrics, *(part for metric in metrics for part in by_thread(metric)))


def operands_of(definition: MetricDefinition) -> tuple[str, ...]:
    """The names in the formula, each once."""
    return named_operands(definition.formula)


def events_of(definition: MetricDefinition) -> tuple[str, ...]:
    """The events in the formula, each once, without the thread selection."""
    return tuple(dict.fromkeys(name.split("@")[0] for name in operands_of(definition) if is_event(name)))


def is_event(operand: str) -> bool:
    """Whether it is counted by thread: no time, no figure of the model's, no series of the whole machine."""
    return operand not in GIVEN_OPERANDS and not operand.startswith(uncore.PREFIX)


def is_modelled(definition: MetricDefinition) -> bool:
    """Whether the model's analytic figures go into it."""
    return any(name in MODELLED_OPERANDS for name in operands_of(definition))


def missing_operands(definition: MetricDefinition, available: Iterable[str]) -> tuple[str, ...]:
    """The metric's operands that are not among ``available``."""
    known = set(available)
    return tuple(name for name in operands_of(definition) if name not in known)


@dataclass(frozen=True)
class Operands:
    """What formulas are made of: every column but ``owner`` and ``iteration`` is a Float64 of one iteration.

    ``owners``: one row an owner, in order: ``time`` (ns, of the iterations that only time), ``counted-time``, what is
    known by arithmetic (``macs``, ``bytes``, ``threads``), and the median of every event (``EVENT``, ``EVENT@main``,
    ``EVENT@workers``). ``iterations``: one row an owner and counting iteration, with the same columns of that
    iteration; null where its event set does not hold the event.
    """

    owners: pl.DataFrame
    iterations: pl.DataFrame
    constant: frozenset[str] = frozenset()  # the columns that are the same in every iteration

    @property
    def available(self) -> tuple[str, ...]:
        """The operands that hold a value for at least one owner."""
        frame = self.owners.drop("owner")
        return tuple(name for name in frame.columns if frame[name].null_count() < frame.height)


@dataclass(frozen=True)
class Evaluated:
    """``frame``: ``owner`` and one Float64 column a metric. ``across_iterations``: metrics whose operands were never
    counted together, so that they are made of medians over different iterations."""

    frame: pl.DataFrame
    across_iterations: frozenset[str]


def evaluate(operands: Operands, metrics: Sequence[MetricDefinition]) -> Evaluated:
    """The metrics of every owner; null where an operand is missing or a divisor is zero."""
    counted = [metric for metric in metrics if "counted-time" in operands_of(metric) or events_of(metric)]
    each = values(operands.iterations, counted)
    together = each.group_by("owner").agg(pl.all().median())
    seen = {metric.name for metric in counted if each[metric.name].null_count() < each.height}
    rest = [metric for metric in metrics if metric.name not in seen]
    plain = values(operands.owners, rest)
    joined = plain.join(together.select("owner", *sorted(seen)), on="owner", how="left", maintain_order="left")
    across_iterations = [
        metric.name
        for metric in rest
        if metric in counted
        and not operands.constant.issuperset(operands_of(metric))
        and plain[metric.name].null_count() < plain.height
    ]
    return Evaluated(joined.select("owner", *(metric.name for metric in metrics)), frozenset(across_iterations))


def values(frame: pl.DataFrame, metrics: Sequence[MetricDefinition]) -> pl.DataFrame:
    """``owner`` and one Float64 column a metric, row by row; null where an operand is missing or a divisor is zero."""
    columns = []
    for metric in metrics:
        if metric.formula == NOT_DEFINED or missing_operands(metric, frame.columns):
            columns.append(pl.lit(None, dtype=pl.Float64).alias(metric.name))
            continue
        value = compiled(metric)
        columns.append(pl.when(value.is_finite()).then(value).alias(metric.name))
    return frame.select("owner", *columns)


def compiled(metric: MetricDefinition) -> pl.Expr:
    """The metric's formula. Raises ``HwprofError`` for one that is none: it is kept in ``run.json``, and may say
    anything."""
    try:
        return expression(metric.formula)
    except (ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise HwprofError(f"the formula of the metric {metric.name} in run.json is damaged: {error}") from error


def _replace(definition: MetricDefinition, name: str, operands: dict[str, str]) -> MetricDefinition:
    """The definition under another name, with other text in the place of operands."""
    formula = re.sub(r'"([^"]+)"', lambda match: operands.get(match[1], match[0]), definition.formula)
    return msgspec.structs.replace(definition, name=name, formula=formula)
