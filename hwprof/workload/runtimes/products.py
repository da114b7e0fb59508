"""Where a runtime does a layer's products: its MACs are in one or two of its operators, and what else is of it may be
done elsewhere."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from hwprof.workload.runtimes.operators import Graph, Operator, Place, of_layers

KINDS: Final = frozenset(
    {"Attention", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "Einsum", "GRU", "Gemm", "LSTM", "MatMul"}
    | {"MatMulInteger", "QLinearConv", "QLinearMatMul", "RNN"}
)
"""ONNX's operators that multiply and add up."""

MULTIPLY: Final = ("Attention", "Conv", "Einsum", "FullyConnected", "GRU", "Gemm", "LSTM", "MatMul", "RNN")
"""What is in the names of those of runtimes, which may do the rest of such a one elsewhere: the sum with its bias."""


class Products(NamedTuple):
    """Of one layer, by the paths of what does them: how many of its operators that multiply."""

    places: Mapping[str, int]
    alike: bool  # all by the same weights: each is as much work

    def share(self, place: str) -> Fraction | None:
        """Of the layer's work, that is done there; None: not known."""
        if place in self.places and len(self.places) > 1 and not self.alike:
            return None
        return Fraction(self.places.get(place, 0), sum(self.places.values()))


def products(
    exported: Graph, executed: Iterable[Operator], does: Mapping[str, Sequence[Operator]], places: Mapping[str, Place]
) -> dict[str, Products]:
    """By the layer's path. ``does``: what each executed operator does; ``places``: where it stands."""
    claims: dict[Operator, list[str]] = defaultdict(list)
    for name, those in does.items():
        for one in those:
            if one.kind in KINDS and one.scopes is not None:
                claims[one].append(name)
    multiplies = {one.name for one in executed if any(word in one.kind for word in MULTIPLY)}
    changing = exported.inputs.union(*(one.outputs for one in _all(exported)))
    found: dict[str, Counter[str]] = defaultdict(Counter)
    weights: dict[str, list[set[str]]] = defaultdict(list)
    for one, names in claims.items():
        of = _last([exported.paths[scope] for scope in of_layers(one.scopes or (), exported.paths)])
        who = multiplies.intersection(names) or names
        at = {_last(places[name].paths) if name in places else "" for name in who}
        found[of].update(at)
        weights[of].append({value for value in one.inputs if value not in changing} if len(at) == 1 else set())
    return {path: Products(dict(at), bool(set.intersection(*weights[path]))) for path, at in found.items()}


def _last(paths: Sequence[str]) -> str:
    """The model's own is empty."""
    return paths[-1] if paths else ""


def _all(exported: Graph) -> Iterable[Operator]:
    yield from exported.operators
    for those in exported.made_of.values():
        yield from those


def together(one: Products, other: Products) -> Products:
    """Of two kinds of calls: where they do not agree, nobody knows."""
    counted = Counter(one.places) + Counter(other.places)
    agree = all(one.share(place) == other.share(place) for place in counted)
    return Products(dict(counted), one.alike and other.alike and agree)
