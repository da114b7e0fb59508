"""A collector that breaks the contract is refused when its class is loaded, and its author is told what is meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hwprof.collector.contract import Availability, Collected, Collector, PassContext
from hwprof.collector.declaration import Declaration, Place
from hwprof.collector.registration import ContractError, check
from hwprof.run.roles import Role

DECLARED = Declaration(name="mine", summary="", implementation="mine:Mine", place=Place.IN_PROCESS)


class Plain(Collector):
    def availability(self) -> Availability:
        return Availability()

    def start(self, context: PassContext) -> None: ...

    def stop(self) -> Collected:
        return Collected()


class Misspelt(Plain):
    def begin_iterations(self, event_set: int) -> None: ...


class Public(Plain):
    rows = 3


class Unfinished(Collector):
    def avaliability(self) -> Availability:
        return Availability()


class HalfACounter(Plain):
    def event_sets(self) -> Sequence[Sequence[str]]:
        return [["cycles"]]


class Counter(HalfACounter):
    def full_reader(self) -> Callable[[], None]:
        return print

    enter_reader = leave_reader = gap_reader = full_reader
    counts = None  # type: ignore[assignment]


class Commanding(Plain):
    def command(self, raw: object, options: object) -> Sequence[str]:
        return ["tool"]


@pytest.mark.parametrize("implementation", [Plain, type("Private", (Plain,), {"_rows": 3})])
def test_what_keeps_it_is_taken(implementation: type[Collector]) -> None:
    assert check(DECLARED, implementation) is implementation


def test_a_counter_is_one_as_a_whole_and_as_it_is_declared() -> None:
    declared = replace(DECLARED, role=Role.COUNTER)
    assert check(declared, Counter) is Counter
    with pytest.raises(ContractError, match="lacks full_reader, enter_reader, leave_reader, gap_reader, counts"):
        check(declared, HalfACounter)
    with pytest.raises(ContractError, match="declared with role other"):
        check(DECLARED, Counter)


@pytest.mark.parametrize(
    ("implementation", "meant"),
    [
        (Misspelt, "Try: begin_iteration,"),
        (Unfinished, "Try: availability,"),
        (Public, "_rows if it is"),
    ],
)
def test_an_unknown_public_name_is_an_error_that_names_the_nearest(implementation: type[Collector], meant: str) -> None:
    with pytest.raises(ContractError) as refusal:
        check(DECLARED, implementation)
    assert meant in str(refusal.value)


@pytest.mark.parametrize(
    ("declared", "implementation"),
    [
        (DECLARED, Commanding),
        (replace(DECLARED, place=Place.LAUNCHER), Plain),
        (replace(DECLARED, own_passes=True), Plain),
        (replace(DECLARED, preferred=True), Plain),
        (DECLARED, object),
        (DECLARED, None),
    ],
)
def test_declaration_and_methods_belong_together(declared: Declaration, implementation: object) -> None:
    with pytest.raises(ContractError):
        check(declared, implementation)
