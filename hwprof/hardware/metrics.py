"""The metrics that this machine's counters give: the names of all (``metrics.toml``), the recipes of its processor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec

from hwprof.data_files import read_toml
from hwprof.hardware.catalogue import GENERIC, Microarchitecture, Recipe, catalogue
from hwprof.hardware.cores import EFFICIENT
from hwprof.run.manifest import MetricDefinition

EFFICIENCY_CORE_SHARE: Final = "efficiency_core_share"

MODELLED_OPERANDS: Final = frozenset({"macs", "bytes"})
"""Operands of formulas that arithmetic on the model gives."""

GIVEN_OPERANDS: Final = MODELLED_OPERANDS | {"time", "counted-time", "threads"}
"""Operands of formulas that are no events."""

_OPERAND = re.compile(r'"([^"]+)"')


class MetricName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a metric is called and how it is shown, on whatever processor."""

    name: str
    title: str
    unit: str
    digits: int
    group: str
    default: bool = False
    core: bool = False
    meaning: str | None = None

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


class _File(msgspec.Struct, forbid_unknown_fields=True):
    metric: list[MetricName]


@cache
def vocabulary() -> tuple[MetricName, ...]:
    """Every metric that counters may give, in order of presentation."""
    return tuple(read_toml(__name__, "metrics.toml", _File).metric)


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


def definition(name: MetricName, kinds: Sequence[tuple[str, Recipe]], elsewhere: frozenset[str]) -> MetricDefinition:
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


def efficiency_core_share(name: MetricName, pmus: Sequence[str]) -> MetricDefinition | None:
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
