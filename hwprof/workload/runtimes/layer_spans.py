"""When layers were at work, by when their operators were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hwprof.workload.runtimes.operators import Place


class Worked(NamedTuple):
    """An operator that was executed, in ns of some clock."""

    operator: str
    begin_ns: int
    end_ns: int


class LayerSpan(NamedTuple):
    """One call of a layer, or of a module around layers."""

    path: str
    begin_ns: int
    end_ns: int
    continues: bool  # a call that had ended for others to be at work


def layer_spans(worked: Iterable[Worked], places: Mapping[str, Place]) -> list[LayerSpan]:
    """Inner ones before those around them. ``worked`` in the order of execution. A layer is at work from the begin of
    its first operator to the end of its last one, as long as none of another layer comes between; a module around
    layers likewise. A call that the runtime comes back to has a span more."""
    found: list[LayerSpan] = []
    begun: set[str] = set()
    open_ones: list[tuple[str, str, int]] = []  # the call's name, the layer's path, begin
    last_ns = 0
    for one in worked:
        place = places.get(one.operator)
        scopes = place.scopes if place is not None else ()
        kept = _common([name for name, _, _ in open_ones], scopes)
        _close(open_ones, kept, last_ns, found, begun)
        if place is not None:
            open_ones += [(name, path, one.begin_ns) for name, path in zip(scopes, place.paths, strict=True)][kept:]
        last_ns = one.end_ns
    _close(open_ones, 0, last_ns, found, begun)
    return found


def _common(names: list[str], others: tuple[str, ...]) -> int:
    number = 0
    for name, other in zip(names, others, strict=False):
        if name != other:
            break
        number += 1
    return number


def _close(
    open_ones: list[tuple[str, str, int]], kept: int, end_ns: int, found: list[LayerSpan], begun: set[str]
) -> None:
    while len(open_ones) > kept:
        name, path, begin_ns = open_ones.pop()
        found.append(LayerSpan(path, begin_ns, end_ns, name in begun))
        begun.add(name)
