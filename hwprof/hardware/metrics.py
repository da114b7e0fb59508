"""Metrics: the facts of all (``metrics.toml``), and how those of counters follow from events on a processor."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Final, Literal, TypeAlias

import msgspec

from hwprof.data_files import read_toml
from hwprof.errors import HwprofError
from hwprof.hardware.catalogue import GENERIC, Microarchitecture, Recipe, catalogue
from hwprof.hardware.cores import EFFICIENT
from hwprof.run.manifest import MetricDefinition

EFFICIENCY_CORE_SHARE: Final = "efficiency_core_share"

MODELLED_OPERANDS: Final = frozenset({"macs", "bytes"})
"""Operands of formulas that arithmetic on the model gives."""

SAMPLED_OPERANDS: Final = ("sampled.cycles", "sampled.instructions")
"""Operands that samples and instrumented code give together."""

GIVEN_OPERANDS: Final = MODELLED_OPERANDS | {"time", "counted-time", "threads", *SAMPLED_OPERANDS}
"""Operands of formulas that are no events."""

Section: TypeAlias = Literal["layers", "topdown", "flops", "dram", "instrumented"]
"""The sections of a report that show metrics; "layers" are those of layers, stages and layer types."""

_OPERAND = re.compile(r'"([^"]+)"')


class MetricFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a metric is called and how it is shown, on whatever processor: see the head of ``metrics.toml``."""

    name: str
    title: str
    unit: str
    digits: int
    group: str
    meaning: str | None = None
    formula: str | None = None
    sampled: str | None = None
    sampled_meaning: str | None = None
    legend: str | None = None
    default: bool = False
    core: bool = False
    section: Section = "layers"
    part_of: str | None = None
    behind: str | None = None
    short_title: str | None = None
    inverse_of: str | None = None
    option: str | None = None
    narrow: int | None = None
    better: Literal["larger", "smaller"] = "smaller"

    def defined(
        self, formula: str, meaning: str | None = None, caveat: str | None = None, source: str | None = None
    ) -> MetricDefinition:
        """The metric with a formula, and with what the processor's file says of it."""
        return MetricDefinition(
            name=self.name,
            title=self.title,
            unit=self.unit,
            digits=self.digits,
            group=self.group,
            core=self.core,
            formula=formula,
            meaning=meaning or self.meaning or self.title,
            caveat=caveat,
            source=source,
        )


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    csv_units: dict[str, str]
    metric: tuple[MetricFacts, ...]


@cache
def _file() -> _File:
    """The data, of which a metric's names for others are checked too."""
    found = read_toml(__name__, "metrics.toml", _File)
    names = [metric.name for metric in found.metric]
    for metric in found.metric:
        if unknown := {metric.part_of, metric.behind, metric.inverse_of} - {None, *names}:
            raise HwprofError(f"hwprof/hardware/metrics.toml: {metric.name} names no metric: {unknown}")
    if len(set(names)) < len(names):
        raise HwprofError(f"hwprof/hardware/metrics.toml: a metric stands there twice: {sorted(names)}")
    return found


@cache
def facts() -> dict[str, MetricFacts]:
    """Every metric by name, in order of presentation."""
    return {metric.name: metric for metric in _file().metric}


@cache
def vocabulary() -> tuple[MetricFacts, ...]:
    """Every metric that counters may give, in order of presentation."""
    return tuple(metric for metric in _file().metric if metric.formula is None)


@cache
def independent() -> tuple[MetricDefinition, ...]:
    """The metrics that are the same on every machine, in order of presentation."""
    return tuple(metric.defined(metric.formula) for metric in _file().metric if metric.formula is not None)


def sampled() -> tuple[MetricDefinition, ...]:
    """The metrics of cycles where nothing counts them, in order of presentation."""
    found = (metric for metric in _file().metric if metric.sampled is not None)
    return tuple(metric.defined(metric.sampled or "", meaning=metric.sampled_meaning) for metric in found)


def lost_with(names: Collection[str], metrics: Iterable[MetricDefinition]) -> list[str]:
    """What is lost where these events and metrics (by name) are not to be had: the titles of the ``metrics`` that are
    made of them, of the metrics among them, and the names of the events that nothing is made of."""
    made_of = {metric: {name.partition("@")[0] for name in operands(metric.formula)} & set(names) for metric in metrics}
    titles = [metric.title for metric, events in made_of.items() if events]
    used = set().union(*made_of.values())
    others = [facts()[name].title if name in facts() else name for name in names if name not in used]
    return list(dict.fromkeys([*titles, *others]))


def csv_unit(unit: str) -> str:
    """A metric's unit as it stands in the header of a CSV column: ``cycles_per_instruction``."""
    return _file().csv_units.get(unit, unit.lower().replace("/", "_per_").replace(" ", "_"))


def groups() -> tuple[str, ...]:
    """The metrics' groups, in order of presentation."""
    return tuple(dict.fromkeys(metric.group for metric in vocabulary()))


def operands(formula: str) -> tuple[str, ...]:
    """The names in an SQL expression over quoted operands, each once."""
    return tuple(dict.fromkeys(_OPERAND.findall(formula)))


def recipes(kind: Microarchitecture | None) -> dict[str, Recipe]:
    """How each metric follows from events on that kind of core; None: a processor that the catalogue does not know.

    Generic events other than the portable ones mean something else on every processor, so they are a last resort.
    """
    generic = catalogue(GENERIC).recipes
    if kind is None:
        return generic
    return {name: recipe for name, recipe in generic.items() if recipe.portable} | kind.catalogue.recipes


def definition(name: MetricFacts, kinds: Sequence[tuple[str, Recipe]], elsewhere: frozenset[str]) -> MetricDefinition:
    """The metric over one kind of core, or summed over several: ``kinds`` are PMU names with their recipes.

    On several kinds an event is called as perf calls it, ``cpu_core/cycles/``; those that no core's PMU counts
    (``elsewhere``: software and uncore events, times) keep their names.
    """
    recipe = kinds[0][1]
    of, per, scale = recipe.of, recipe.per, recipe.scale
    if len(kinds) > 1:
        if any(recipe.scale != scale for _, recipe in kinds):
            kinds, scale = [(pmu, _scaled(recipe)) for pmu, recipe in kinds], 1
        of = _summed([qualified(recipe.of, pmu, elsewhere) for pmu, recipe in kinds])
        per = _summed([qualified(recipe.per, pmu, elsewhere) for pmu, recipe in kinds if recipe.per])
    formula = of if scale == 1 else f"{scale:g} * {_factor(of)}"
    return name.defined(
        f"{formula if scale != 1 else _factor(of)} / {_factor(per)}" if per else formula,
        meaning=recipe.meaning,
        caveat=" / ".join(dict.fromkeys(recipe.caveat for _, recipe in kinds if recipe.caveat)) or None,
        source=" / ".join(dict.fromkeys(recipe.source for _, recipe in kinds if recipe.source)) or None,
    )


def efficiency_core_share(name: MetricFacts, pmus: Sequence[str]) -> MetricDefinition | None:
    """How much of the cycles ran on efficiency cores, from the cycles of every kind of core; None where there is only
    one kind, or none that is known to be efficient."""
    efficient = [pmu for pmu in pmus if pmu in EFFICIENT]
    if len(pmus) < 2 or not efficient:
        return None
    cycles = {pmu: f'"{qualified_name("cycles", pmu)}"' for pmu in pmus}
    part = " + ".join(cycles[pmu] for pmu in efficient)
    return name.defined(f"100 * {_factor(part)} / {_factor(' + '.join(cycles.values()))}")


def qualified(formula: str, pmu: str, elsewhere: frozenset[str]) -> str:
    """The formula with the PMU's name before every event but those of ``elsewhere``."""

    def rename(match: re.Match[str]) -> str:
        return match[0] if match[1] in elsewhere else f'"{qualified_name(match[1], pmu)}"'

    return _OPERAND.sub(rename, formula)


def qualified_name(event: str, pmu: str) -> str:
    """An event of one kind of core, as perf writes it."""
    return f"{pmu}/{event}/"


def _scaled(recipe: Recipe) -> Recipe:
    """The recipe with its scale in the numerator."""
    return msgspec.structs.replace(recipe, of=f"{recipe.scale:g} * {_factor(recipe.of)}", scale=1)


def _factor(expression: str) -> str:
    """The expression as an operand of * or /: in parentheses unless it is a single name or already one whole."""
    return expression if _OPERAND.fullmatch(expression) or _is_enclosed(expression) else f"({expression})"


def _is_enclosed(expression: str) -> bool:
    """Whether the first parenthesis is closed by the last character."""
    bare = _OPERAND.sub("x", expression)
    depth = 0
    for place, character in enumerate(bare):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(bare) - 1 and bare.startswith("(")
    return False


def _summed(parts: Sequence[str]) -> str:
    different = list(dict.fromkeys(parts))
    return different[0] if len(different) == 1 else " + ".join(map(_factor, different))
