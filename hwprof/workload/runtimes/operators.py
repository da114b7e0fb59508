"""Which layers the operators of a runtime are of: of those that were exported each says its module, and ``matching``
which of these an executed one does. One that is new, as what changes a layout, works for the one behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Final, NamedTuple

from hwprof.run.owner_names import path_of

Scopes = tuple[str, ...]
"""The names of the modules that an operator is in, the outermost first; without the model itself, whose name is empty.
They are those of the calls: a module with several names has each of them."""

SEPARATOR: Final = "+"

IDENTITY: Final = "Identity"
"""What does nothing: a dropout, a copy. Whoever has it done has not done a layer."""


class Operator(NamedTuple):
    """One of a graph, with the names of what it takes and gives."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scopes: Scopes | None = None  # None: the exporter does not say
    origins: tuple[str, ...] = ()  # of a runtime's: the exported ones that it says, or its name tells, it was made of
    ends_in: str | None = None  # of a runtime's: the kind of the last one, where it says so
    moves: bool = False  # of a runtime's: it changes a layout, whatever what it gives is called


class Place(NamedTuple):
    """Of which layer an operator is: the module calls around it, the outermost first, and their paths. Where it is of
    several, the last one is a name for these ``members``."""

    scopes: Scopes
    paths: tuple[str, ...]
    members: tuple[str, ...] = ()  # their paths


class Graph(NamedTuple):
    """What was exported, in an order in which it can be executed."""

    operators: Sequence[Operator]
    inputs: frozenset[str]  # the names of what it is given, beside weights
    paths: Mapping[str, str]  # of the modules that are layers, by name
    made_of: Mapping[str, Sequence[Operator]] = MappingProxyType({})  # what the exporter has fused, by the name


def places(exported: Graph, executed: Sequence[Operator], does: Mapping[str, Sequence[Operator]]) -> dict[str, Place]:
    """By the name of an executed operator, which ``does`` these; of those that are of no layer there is none."""
    found = {}
    for name, those in does.items():
        at_work = [one for one in those if one.kind != IDENTITY] or those
        if (place := _place(at_work, exported.paths)) is not None:
            found[name] = place
    return _with_new_ones(executed, found)


def fused(found: Mapping[str, Place]) -> dict[str, tuple[str, ...]]:
    """The layers that are done in one, by its name."""
    return {place.paths[-1]: place.members for place in found.values() if place.members}


def common(sequences: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all of them begin with."""
    same = takewhile(lambda those: len(set(those)) == 1, zip(*sequences, strict=False))
    return tuple(those[0] for those in same)


def _place(members: Sequence[Operator], paths: Mapping[str, str]) -> Place | None:
    """That of one operator's members; where they are of several layers it is named as a group of them."""
    known = {one.name: of_layers(one.scopes, paths) for one in members if one.scopes is not None}
    if not known:
        return None
    distinct = list(dict.fromkeys(known.values()))
    around = common(distinct)
    inner = tuple(paths[name] for name in around)
    if len(distinct) == 1:
        return Place(around, inner)
    named = {member.name: member.kind.lower() for member in members}
    name = _group(around, [scope[-1] if scope != around else named[name] for name, scope in known.items()])
    return Place((*around, name), (*inner, name), tuple(paths[scope[-1]] for scope in distinct if scope != around))


def of_layers(scopes: Scopes, paths: Mapping[str, str]) -> Scopes:
    """Those that are layers: what is in a leaf is none."""
    return tuple(name for name in scopes if name in paths)


def _group(around: Scopes, names: Iterable[str]) -> str:
    """``model.0.conv+act``."""
    prefix = f"{around[-1]}." if around else ""
    return path_of(prefix + SEPARATOR.join(dict.fromkeys(name.removeprefix(prefix) for name in names)))


def _with_new_ones(executed: Sequence[Operator], found: dict[str, Place]) -> dict[str, Place]:
    """Those that are nowhere in what was exported work for the one behind them, or else before them."""
    takes = {value: one.name for one in reversed(executed) for value in one.inputs}
    gives = {value: one.name for one in executed for value in one.outputs}
    for one in reversed(executed):
        behind = [takes[value] for value in one.outputs if value in takes]
        _take_over(one, behind, found)
    for one in executed:
        _take_over(one, [gives[value] for value in one.inputs if value in gives], found)
    return found


def _take_over(one: Operator, others: Iterable[str], found: dict[str, Place]) -> None:
    if one.name not in found and (name := next((name for name in others if name in found), None)) is not None:
        found[one.name] = found[name]
