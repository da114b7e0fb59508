"""Which exported operators each operator of a runtime does.

A runtime fuses operators, leaves out what is constant, and puts in others. One that it has kept is known by its name,
or by that of what it gives; one that is gone was done by the one that takes what it took, or by the one before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

from hwprof.workload.runtimes.operators import Graph, Operator, Scopes, common


def members(exported: Graph, executed: Sequence[Operator]) -> dict[str, list[Operator]]:
    """As they were before the exporter fused any, by the name of the executed one. Each has its scopes, if anybody says
    them."""
    matching = _Matching(exported, executed)
    scopes = matching.scopes()
    matching.take_ends()
    matching.take_behind()
    matching.take_beside(scopes)
    found = {}
    for name, those in matching.found().items():
        inner = [inner for one in those for inner in exported.made_of.get(one.name, (one,))]
        found[name] = [one if one.scopes is not None else one._replace(scopes=scopes.get(one.name)) for one in inner]
    return found


def optimised(graph: Graph, operators: Sequence[Operator]) -> Graph:
    """The same as the exporter has made it since then: it fuses operators, too. One that is new does what is gone, and
    what else is gone was constant, as shapes are."""
    matching = _Matching(graph, operators)
    matching.take_ends()
    matching.take_ahead()
    matching.take_behind()
    return graph._replace(operators=operators, made_of=matching.found())


class _Matching:
    """What is known by name at first; each step takes more of what is gone."""

    def __init__(self, graph: Graph, executed: Sequence[Operator]) -> None:
        self._graph = graph
        self._executed = executed
        self._gives = {value: one for one in graph.operators for value in one.outputs}
        self._takes: dict[str, list[Operator]] = defaultdict(list)
        for one in graph.operators:
            for value in one.inputs:
                self._takes[value].append(one)
        self._does = self._known()
        self._done = {origin.name: name for name, those in self._does.items() for origin in those}
        self._varying = _on_inputs(graph)
        self._gone = {one.name: one for one in self._varying if one.name not in self._done}
        self._values: dict[str, str] = {}
        """What the runtime's values are of those that were exported, in whatever layout."""

    def _known(self) -> dict[str, list[Operator]]:
        by_name = {one.name: one for one in self._graph.operators}
        does = {}
        for one in self._executed:
            names = () if one.moves else (*one.origins, one.name, *one.outputs)
            known = [by_name.get(name) or self._gives.get(name) for name in names]
            does[one.name] = list({origin.name: origin for origin in known if origin is not None}.values())
        return does

    def _take(self, name: str, those: Iterable[Operator]) -> None:
        for one in those:
            self._does[name].append(one)
            self._done[one.name] = name
            del self._gone[one.name]

    def _taken(self, one: Operator) -> Set[str]:
        return {self._values[value] for value in one.inputs}

    def found(self) -> dict[str, list[Operator]]:
        """In the order of the exported ones."""
        order = {one.name: number for number, one in enumerate(self._graph.operators)}
        return {name: sorted(those, key=lambda one: order[one.name]) for name, those in self._does.items() if those}

    def scopes(self) -> dict[str, Scopes]:
        """Of the exported ones. One of which the exporter does not say any is where those before and behind it all
        are."""
        known = {one.name: one.scopes for one in self._graph.operators if one.scopes is not None}
        for one in self._graph.operators:
            if one.scopes is None:
                before, after = self._beside(one)
                if around := [known[name] for name in (*before, *after) if name in known]:
                    known[one.name] = common(around)
        return known

    def _beside(self, one: Operator) -> tuple[list[str], list[str]]:
        """Those that give what it takes, and that take what it gives."""
        before = [self._gives[value].name for value in one.inputs if value in self._gives]
        return before, [behind.name for value in one.outputs for behind in self._takes[value]]

    def take_ends(self) -> None:
        """What operators do behind what they are known by; from here on it is known what the runtime's values are."""
        for one in self._executed:
            self._values.update((value, value) for value in one.inputs if value not in self._values)
            while (further := self._at_its_end(one)) is not None:
                self._take(one.name, [further])
            self._values.update(self._given(one))

    def _at_its_end(self, one: Operator) -> Operator | None:
        """An operator that takes what comes out and what is taken besides, as a sum does; and what it ends in."""
        does = self._does[one.name]
        behind = [after for value in does[-1].outputs for after in self._takes[value]] if does else []
        behind = [after for after in behind if after.name in self._gone]
        if not behind:
            return None
        taken = Counter(self._values[value] for value in one.inputs)
        besides = (taken - Counter(value for done in does for value in done.inputs)).keys()
        fitting = [after for after in behind if not besides.isdisjoint(after.inputs)]
        if not fitting and one.ends_in is not None and one.ends_in not in {done.kind for done in does}:
            fitting = [after for after in behind if after.kind == one.ends_in]
        return next(iter(fitting), None)

    def _given(self, one: Operator) -> dict[str, str]:
        does = self._does[one.name]
        found = {}
        for value in one.outputs:
            if value in self._gives:
                found[value] = value
            elif does:
                found[value] = does[-1].outputs[0]
            elif one.inputs:
                found[value] = self._values[one.inputs[0]]
        return found

    def take_ahead(self) -> None:
        """What is gone behind what an operator takes that is known by nothing."""
        # constants may be of operators far apart
        changing = self._graph.inputs.union(*(one.outputs for one in self._varying))
        for one in self._executed:
            if not self._does[one.name]:
                self._take(one.name, self._ahead(set(self._taken(one) & changing)))

    def _ahead(self, given: set[str]) -> list[Operator]:
        found = []
        for one in self._gone.values():
            if not given.isdisjoint(one.inputs):
                found.append(one)
                given.update(one.outputs)
        return found

    def take_behind(self) -> None:
        """What is gone between what an operator takes and the last that it does: it does all of that."""
        for one in self._executed:
            self._take(one.name, self._behind(self._does[one.name], self._taken(one)))

    def _behind(self, last: Sequence[Operator], taken: Set[str]) -> list[Operator]:
        found: dict[str, Operator] = {}
        waiting = list(last)
        while waiting:
            for value in waiting.pop().inputs:
                before = self._gives.get(value)
                if before is not None and value not in taken and before.name in self._gone and before.name not in found:
                    found[before.name] = before
                    waiting.append(before)
        return list(found.values())

    def take_beside(self, scopes: Mapping[str, Scopes]) -> None:
        """What is gone, and named by nobody, does who does what is before it; of its own layer, if there is such."""
        for one in list(self._gone.values()):
            before, after = self._beside(one)
            own = [name for name in (*before, *after) if scopes.get(name) == scopes.get(one.name)]
            if (name := next((self._done[name] for name in (*own, *before) if name in self._done), None)) is not None:
                self._take(name, [one])


def _on_inputs(graph: Graph) -> list[Operator]:
    """The operators that depend on what the model is given: the others are done before anything is executed."""
    found, varies = [], set(graph.inputs)
    for one in graph.operators:
        if not varies.isdisjoint(one.inputs):
            found.append(one)
            varies.update(one.outputs)
    return found
