"""Whether a collector fulfils the contract: checked when its class is loaded, before anything is measured with it."""

from __future__ import annotations

import difflib
from abc import ABC
from collections.abc import Iterator
from typing import Generic

from hwprof.collector.contract import EDGE_METHODS, Collector
from hwprof.collector.declaration import Declaration, Place
from hwprof.errors import HwprofError
from hwprof.run.roles import Role

CONTRACT = frozenset(name for name in vars(Collector) if not name.startswith("_"))
"""Every public name of a collector."""


class ContractError(HwprofError):
    """A collector breaks the contract; its author is told how."""


def check(declaration: Declaration, implementation: object) -> type[Collector]:
    """The class, if it is a collector as it is declared. Raises ``ContractError``."""
    if not isinstance(implementation, type) or not issubclass(implementation, Collector):
        raise ContractError(
            f"{declaration.implementation} is no collector", "derive it from hwprof.collector.contract.Collector"
        )
    for complaint in _complaints(declaration, implementation):
        raise complaint
    return implementation


def _complaints(declaration: Declaration, implementation: type[Collector]) -> Iterator[ContractError]:
    name = implementation.__name__
    for unknown in _unknown_names(implementation):
        near = difflib.get_close_matches(unknown, CONTRACT, n=1, cutoff=0.0)
        yield ContractError(
            f"{name}.{unknown} is nothing that a collector has",
            f"{near[0]}, or _{unknown} if it is the collector's own",
        )
    if lacking := sorted(implementation.__abstractmethods__):
        yield ContractError(f"{name} lacks {', '.join(lacking)}", "implement what every collector has")
    edges = [method for method in EDGE_METHODS if _overrides(implementation, method)]
    counter = declaration.role is Role.COUNTER
    if edges and len(edges) < len(EDGE_METHODS):
        missing = ", ".join(method for method in EDGE_METHODS if method not in edges)
        yield ContractError(f"{name} counts at edges, and lacks {missing}", "implement all of them or none")
    if counter != bool(edges):
        yield ContractError(
            f"{declaration.name} is declared with role {declaration.role.value}, and {name} has"
            f" {'' if edges else 'no '}methods of a counter",
            "Role.COUNTER is for those that read counts at edges",
        )
    if (declaration.preferred or declaration.fallback) and not counter:
        yield ContractError(f"{declaration.name} is preferred or a fallback, and no counter", "Role.COUNTER")
    for method in ("iteration_edge", "between_iterations"):
        if _overrides(implementation, method) and declaration.place is Place.EXTERNAL:
            yield ContractError(f"{declaration.name}: {method} is called in the worker", "declare it IN_PROCESS")
    for method, declared, what in (
        ("own_passes", declaration.own_passes, "own_passes=True"),
        ("command", declaration.place is Place.LAUNCHER, "Place.LAUNCHER"),
        ("collect_results", declaration.place is Place.LAUNCHER, "Place.LAUNCHER"),
    ):
        if declared != _overrides(implementation, method):
            remedy = f"implement {method}" if declared else f"declare it with {what}"
            yield ContractError(f"{declaration.name}: {method} and {what} belong together", remedy)


def _overrides(implementation: type[Collector], method: str) -> bool:
    return getattr(implementation, method) is not getattr(Collector, method)


def _unknown_names(implementation: type[Collector]) -> list[str]:
    own = [base for base in implementation.__mro__ if base not in (*Collector.__mro__, ABC, Generic, object)]
    names = dict.fromkeys(name for base in own for name in vars(base) if not name.startswith("_"))
    return [name for name in names if name not in CONTRACT]
