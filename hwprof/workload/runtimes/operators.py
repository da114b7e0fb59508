"""Which layers the operators of a runtime are of: its graph beside the one that was exported, in which each operator
says of which module it is.

A runtime fuses operators, leaves out what is constant, and puts in others that change layouts. One that it has kept is
known by its name, or by that of what it gives; one that is gone was done by the one that has its module, or by the one
before it; and one that is new works for the one behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from hwprof.run.owner_names import path_of

Scopes = tuple[str, ...]
"""The names of the modules that an operator is in, the outermost first; without the model itself, whose name is empty.
They are those of the calls: a module with several names has each of them."""

SEPARATOR: Final = "+"


class Operator(NamedTuple):
    """One of a graph, with the names of what it takes and gives."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scopes: Scopes | None = None  # None: the exporter does not say
    origins: tuple[str, ...] = ()  # of a runtime's: the exported ones that it says, or its name tells, it was made of


class Place(NamedTuple):
    """Of which layer an operator is: the module calls around it, the outermost first, and their paths."""

    scopes: Scopes
    paths: tuple[str, ...]


class Graph(NamedTuple):
    """What was exported, in an order in which it can be executed."""

    operators: Sequence[Operator]
    inputs: frozenset[str]  # the names of what it is given, beside weights
    paths: Mapping[str, str]  # of the modules that are layers, by name


def places(exported: Graph, executed: Sequence[Operator]) -> dict[str, Place]:
    """By the name of an executed operator; of those that are of no layer there is none."""
    scopes = _with_all_scopes(exported.operators)
    members = _members(exported, executed, scopes)
    found = {
        name: place for name, those in members.items() if (place := _place(those, scopes, exported.paths)) is not None
    }
    return _with_new_ones(executed, found)


def _with_all_scopes(exported: Sequence[Operator]) -> dict[str, Scopes]:
    """By name. One of which the exporter does not say it is where those before and behind it all are."""
    known = {one.name: one.scopes for one in exported if one.scopes is not None}
    gives = {value: one.name for one in exported for value in one.outputs}
    takes = defaultdict(list)
    for one in exported:
        for value in one.inputs:
            takes[value].append(one.name)
    for one in exported:
        if one.scopes is None:
            beside = [gives[value] for value in one.inputs if value in gives]
            beside += [name for value in one.outputs for name in takes[value]]
            if around := [known[name] for name in beside if name in known]:
                known[one.name] = common(around)
    return known


def common(sequences: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all of them begin with."""
    same = takewhile(lambda those: len(set(those)) == 1, zip(*sequences, strict=False))
    return tuple(those[0] for those in same)


def _members(graph: Graph, executed: Sequence[Operator], scopes: Mapping[str, Scopes]) -> dict[str, list[Operator]]:
    """The exported operators that each executed one does, in the order of these."""
    exported = graph.operators
    by_name = {one.name: one for one in exported}
    gives = {value: one for one in exported for value in one.outputs}
    done: dict[str, list[str]] = {}
    does: defaultdict[str, list[str]] = defaultdict(list)
    for one in executed:
        known = [by_name.get(name) or gives.get(name) for name in (*one.origins, one.name, *one.outputs)]
        for name in dict.fromkeys(origin.name for origin in known if origin is not None):
            does[one.name].append(name)
            done.setdefault(name, []).append(one.name)
    takes: defaultdict[str, list[Operator]] = defaultdict(list)
    for one in exported:
        for value in one.inputs:
            takes[value].append(one)
    gone = [one for one in _on_inputs(graph) if one.name not in done]
    for one in reversed(gone):  # one that it is done with may be gone, too
        behind = [other for value in one.outputs for other in takes[value]]
        _join(one, [other for other in behind if scopes.get(other.name) == scopes.get(one.name)], done, does)
    for one in gone:
        if one.name not in done:
            _join(one, [gives[value] for value in one.inputs if value in gives], done, does)
    order = {one.name: number for number, one in enumerate(exported)}
    return {name: [by_name[one] for one in sorted(those, key=order.__getitem__)] for name, those in does.items()}


def _on_inputs(graph: Graph) -> list[Operator]:
    """The operators that depend on what the model is given: the others are done before anything is executed."""
    found, varies = [], set(graph.inputs)
    for one in graph.operators:
        if not varies.isdisjoint(one.inputs):
            found.append(one)
            varies.update(one.outputs)
    return found


def _join(one: Operator, others: Iterable[Operator], done: dict[str, list[str]], does: dict[str, list[str]]) -> None:
    by = next((done[other.name] for other in others if other.name in done), None)
    if by is not None:
        done[one.name] = by[:1]
        does[by[0]].append(one.name)


def _place(members: Sequence[Operator], scopes: Mapping[str, Scopes], paths: Mapping[str, str]) -> Place | None:
    """That of one operator's members; where they are of several layers it is named as a group of them."""
    known = {one.name: _of_layers(scopes[one.name], paths) for one in members if one.name in scopes}
    if not known:
        return None
    distinct = list(dict.fromkeys(known.values()))
    around = common(distinct)
    inner = tuple(paths[name] for name in around)
    if len(distinct) == 1:
        return Place(around, inner)
    named = {one.name: one.kind.lower() for one in members}
    name = _group(around, [known[one][-1] if known[one] != around else named[one] for one in known])
    return Place((*around, name), (*inner, name))


def _of_layers(scopes: Scopes, paths: Mapping[str, str]) -> Scopes:
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
