"""Ctrl-C is told apart from what foreign code raises."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from hwprof import interrupts


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_an_interrupt_of_its_own() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.tell_apart()
    with pytest.raises(interrupts.Interrupt):
        signal.raise_signal(signal.SIGINT)


def test_where_it_is_ignored_it_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts.tell_apart()
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("kind", [interrupts.Interrupt, ValueError])
def test_one_that_comes_while_a_class_is_made_is_told_as_one(kind: type[BaseException]) -> None:
    class Field:
        def __set_name__(self, owner: type, name: str) -> None:
            raise kind

    with pytest.raises((RuntimeError, kind)) as raised:
        type("Made", (), {"field": Field()})
    assert isinstance(interrupts.unwrapped(raised.value), interrupts.Interrupt) == (kind is interrupts.Interrupt)
