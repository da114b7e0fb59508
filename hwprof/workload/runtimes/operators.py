"""Which layers the operators of a runtime are of: its graph beside the one that was exported, in which each operator
says of which module it is.

A runtime fuses operators, leaves out what is constant, and puts in others that change layouts. One that it has kept is
known by its name, or by that of what it gives; one that is gone was done by the one that takes what it took, or by the
one before it; and one that is new works for the one behind it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
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

    def optimised(self, operators: Sequence[Operator]) -> Graph:
        """The same, as the exporter has made it since then: it fuses operators, too."""
        members = _members(self, operators, _with_all_scopes(self.operators), replaces=True)
        return self._replace(operators=operators, made_of=members)


def members(exported: Graph, executed: Sequence[Operator]) -> dict[str, list[Operator]]:
    """The operators that each executed one does, as they were before the exporter fused any, by its name. All of them
    know their scopes, but of which nobody says any."""
    scopes = _with_all_scopes(exported.operators)
    found = {}
    for name, those in _members(exported, executed, scopes).items():
        inner = [inner for one in those for inner in exported.made_of.get(one.name, (one,))]
        found[name] = [one if one.scopes is not None else one._replace(scopes=scopes.get(one.name)) for one in inner]
    return found


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


def _members(
    graph: Graph, executed: Sequence[Operator], scopes: Mapping[str, Scopes], *, replaces: bool = False
) -> dict[str, list[Operator]]:
    """The exported operators that each executed one does, in the order of these. ``replaces``: one that is new
    does what is gone, and what else is gone was constant, as shapes are; otherwise it changes a layout."""
    by_name = {one.name: one for one in graph.operators}
    gives = {value: one for one in graph.operators for value in one.outputs}
    does: dict[str, list[Operator]] = {}
    for one in executed:
        names = () if one.moves else (*one.origins, one.name, *one.outputs)
        known = [by_name.get(name) or gives.get(name) for name in names]
        does[one.name] = list({origin.name: origin for origin in known if origin is not None}.values())
    done = {origin.name: name for name, those in does.items() for origin in those}
    varying = _on_inputs(graph)
    gone = {one.name: one for one in varying if one.name not in done}

    def take(name: str, those: Iterable[Operator]) -> None:
        for one in those:
            does[name].append(one)
            done[one.name] = name
            del gone[one.name]

    values: dict[str, str] = {}
    for one in executed:
        values.update((value, value) for value in one.inputs if value not in values)
        take(one.name, _at_its_end(one, does[one.name], [values[value] for value in one.inputs], gone))
        values.update(_given(one, does[one.name], gives, values))
    taken = {one.name: {values[value] for value in one.inputs} for one in executed}
    if replaces:
        given = graph.inputs.union(*(one.outputs for one in varying))  # constants may be of operators far apart
        for one in executed:
            if not does[one.name]:
                take(one.name, _ahead(taken[one.name] & given, gone))
    for one in executed:
        take(one.name, _behind(does[one.name], taken[one.name], gives, gone))
    for one in [] if replaces else list(gone.values()):
        if (name := _beside(one, graph, scopes, done)) is not None:
            take(name, [one])
    order = {one.name: number for number, one in enumerate(graph.operators)}
    return {name: sorted(those, key=lambda one: order[one.name]) for name, those in does.items() if those}


def _given(
    one: Operator, does: Sequence[Operator], gives: Mapping[str, Operator], values: Mapping[str, str]
) -> dict[str, str]:
    """What its values are of those that were exported, in whatever layout."""
    found = {}
    for value in one.outputs:
        if value in gives:
            found[value] = value
        elif does:
            found[value] = does[-1].outputs[0]
        elif one.inputs:
            found[value] = values[one.inputs[0]]
    return found


def _at_its_end(
    one: Operator, does: Sequence[Operator], taken: Sequence[str], gone: Mapping[str, Operator]
) -> list[Operator]:
    """What is gone and done by an operator behind what it is known by: an operator that takes what comes out of that
    and what it takes besides, as a sum does; and what it says that it ends in."""
    found: list[Operator] = []
    while does:
        given = (found or does)[-1].outputs
        besides = (Counter(taken) - Counter(value for done in (*does, *found) for value in done.inputs)).keys()
        behind = [next_one for next_one in gone.values() if not set(given).isdisjoint(next_one.inputs)]
        behind = [next_one for next_one in behind if next_one not in found]
        fitting = [next_one for next_one in behind if not besides.isdisjoint(next_one.inputs)]
        if not fitting and one.ends_in is not None and one.ends_in not in {done.kind for done in (*does, *found)}:
            fitting = [next_one for next_one in behind if next_one.kind == one.ends_in]
        if not fitting:
            break
        found.append(fitting[0])
    return found


def _behind(
    last: Sequence[Operator], taken: Collection[str], gives: Mapping[str, Operator], gone: Mapping[str, Operator]
) -> list[Operator]:
    """What is gone between what an operator takes and the ``last`` that it does: it does all of that."""
    found: dict[str, Operator] = {}
    waiting = list(last)
    while waiting:
        for value in waiting.pop().inputs:
            before = gives.get(value)
            if before is not None and value not in taken and before.name in gone and before.name not in found:
                found[before.name] = before
                waiting.append(before)
    return list(found.values())


def _ahead(taken: Iterable[str], gone: Mapping[str, Operator]) -> list[Operator]:
    """What is gone behind what an operator takes."""
    given, found = set(taken), []
    for one in gone.values():
        if not given.isdisjoint(one.inputs):
            found.append(one)
            given.update(one.outputs)
    return found


def _on_inputs(graph: Graph) -> list[Operator]:
    """The operators that depend on what the model is given: the others are done before anything is executed."""
    found, varies = [], set(graph.inputs)
    for one in graph.operators:
        if not varies.isdisjoint(one.inputs):
            found.append(one)
            varies.update(one.outputs)
    return found


def _beside(gone: Operator, graph: Graph, scopes: Mapping[str, Scopes], done: Mapping[str, str]) -> str | None:
    """Who does what is gone, and named by nobody: who does what is before it; of its own layer, if there is such."""
    before = [one.name for one in graph.operators if not set(one.outputs).isdisjoint(gone.inputs)]
    behind = [one.name for one in graph.operators if not set(one.inputs).isdisjoint(gone.outputs)]
    own = [name for name in (*before, *behind) if scopes.get(name) == scopes.get(gone.name)]
    return next((done[name] for name in (*own, *before) if name in done), None)


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
