from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hwprof.cli import collection, products
from hwprof.cli.collection import _interrupted
from hwprof.session.interruption import AGAIN, ENDING, EndedBySignal, Held, comes_again, name_of, signals_interrupt
from tests.support.synthetic_run import build


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """As it was: whoever tells where a run is kept heeds it no more."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_signals_without_a_name_have_a_number() -> None:
    assert name_of(15) == "SIGTERM"
    assert name_of(40) == "signal 40"


def test_the_first_signal_interrupts_and_the_next_does_not() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with signals_interrupt():
        with pytest.raises(EndedBySignal) as caught:
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.number == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_somebody_swallows_is_known_at_the_end() -> None:
    with signals_interrupt() as came:
        assert not came
        with suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)
    assert came == [signal.SIGTERM]


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_what_comes_while_it_is_held_is_heeded_later_and_a_second_one_at_once(number: signal.Signals) -> None:
    with signals_interrupt() as came:
        held = Held()
        held.heed()  # nothing has come
        held.begin()
        signal.raise_signal(number)
        assert held.came and not came
        with pytest.raises(KeyboardInterrupt) as later:
            held.heed()
        held.end()
    assert getattr(later.value, "number", signal.SIGINT) == number
    with signals_interrupt():
        held = Held()
        held.begin()
        signal.raise_signal(number)
        held.begin()  # of something else that is not to be lost: it has been asked for once
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        held.end()


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_who_is_held_up_by_it_hears_at_once_that_it_has_come(number: signal.Signals) -> None:
    heard: list[int] = []
    with signals_interrupt():
        held = Held(hurry=lambda: heard.append(number))
        held.begin()
        assert not heard
        signal.raise_signal(number)
        assert heard == [number]
        held.end()


@pytest.mark.parametrize("number", ENDING)
def test_one_that_ends_a_process_is_not_held_for_long(number: signal.Signals) -> None:
    """What is brought to its end may hang, and nobody sends a second one."""
    told: list[str] = []
    with signals_interrupt():
        held = Held(told.append, longest_s=0.2)
        held.begin()
        signal.raise_signal(number)
        began_s = time.monotonic()
        with pytest.raises(EndedBySignal) as caught:
            time.sleep(20)
        held.end()
    assert caught.value.number == number and time.monotonic() - began_s < 10
    came, lost = told
    assert came == f"{number.name} came: keeping what is measured, if that takes 0.2 s at most"
    assert "lost" in lost and "Ctrl-C" in lost


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("waited_s", [0.5, 0])
def test_one_that_was_raised_is_taken_as_one_that_comes(number: signal.Signals, waited_s: float) -> None:
    """It comes a second time by itself, or from whoever sends it, and not a third time."""
    told: list[str] = []
    with signals_interrupt():
        held = Held(told.append, longest_s=0.2)
        with pytest.raises(EndedBySignal) as first:
            signal.raise_signal(number)
        held.take(first.value)
        assert held.came
        with pytest.raises(EndedBySignal) as second:
            if waited_s:
                time.sleep(20)
            else:
                signal.raise_signal(number)
        signal.raise_signal(number)
        held.end()
        with pytest.raises(EndedBySignal) as later:
            held.heed()
        signal.raise_signal(number)
    assert second.value.number == later.value.number == number
    assert told[0] == f"{number.name} came: keeping what is measured, if that takes 0.2 s at most"
    assert len(told) == (2 if waited_s else 1)


def test_ctrl_c_that_was_raised_is_taken_as_one_that_may_be_held_for_long() -> None:
    told: list[str] = []
    held = Held(told.append, longest_s=0.1)
    held.take(KeyboardInterrupt())
    time.sleep(0.3)
    assert held.came and told == [AGAIN]
    with pytest.raises(KeyboardInterrupt):
        held.heed()


@pytest.mark.parametrize("number", ENDING)
def test_what_is_made_of_what_was_kept_is_bounded_in_time(number: signal.Signals) -> None:
    with signals_interrupt(), pytest.raises(EndedBySignal) as caught, comes_again(EndedBySignal(number), 0.1):
        time.sleep(20)
    assert caught.value.number == number
    with signals_interrupt(), comes_again(EndedBySignal(number), 0.2):
        pass
    with comes_again(KeyboardInterrupt(), 0.1), comes_again(None, 0.1):
        time.sleep(0.5)


def test_ctrl_c_is_said_to_be_held_and_may_be_so_for_long() -> None:
    told: list[str] = []
    held = Held(told.append, longest_s=0.1)
    held.begin()
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.5)
    held.end()
    assert held.came and told == ["keeping what is measured; Ctrl-C again: not even that"]


def test_what_has_been_held_does_not_come_again() -> None:
    with signals_interrupt() as came:
        held = Held(longest_s=0.2)
        held.begin()
        signal.raise_signal(signal.SIGTERM)
        held.end()
        time.sleep(0.5)
    assert held.came and not came


def test_what_came_a_second_time_does_not_come_a_third_time() -> None:
    with signals_interrupt():
        held = Held(longest_s=0.2)
        held.begin()
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(EndedBySignal):
            signal.raise_signal(signal.SIGTERM)
        with signals_interrupt() as further:
            time.sleep(0.5)
            assert not further
        held.end()


def test_nothing_is_held_that_was_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        held = Held()
        held.begin()
        signal.raise_signal(signal.SIGHUP)
        held.end()
        assert not held.came and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signals_that_come_at_once_are_no_complaint_of_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    with signals_interrupt():
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        for number in ENDING:
            signal.raise_signal(number)
        with pytest.raises(EndedBySignal):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        for _ in range(1000):  # where Python looks for what came
            pass
    assert not complaints


def test_what_was_ignored_from_the_start_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_interrupt():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    ("interrupt", "code", "says"),
    [(KeyboardInterrupt(), 130, "interrupted"), (EndedBySignal(signal.SIGHUP), 129, "ended by SIGHUP")],
)
def test_a_run_that_is_complete_is_said_where(
    interrupt: KeyboardInterrupt, code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = build(tmp_path)
    (run.path / ".trace.pftrace.x.part").touch()
    monkeypatch.chdir(tmp_path)
    error = _interrupted(run, interrupt)
    name = run.path.relative_to(tmp_path)
    assert str(error) == f"{says}; kept in {name}, without a trace: hwprof report {name}"
    assert error.exit_code == code
    assert not list(run.path.glob(".*.part"))
    (run.path / "trace.pftrace").touch()
    assert "trace" not in str(_interrupted(run, interrupt))


@pytest.mark.usefixtures("ctrl_c")
def test_a_run_without_a_pass_is_taken_away(tmp_path: Path) -> None:
    run = build(tmp_path)
    run.manifest.passes.clear()
    assert str(_interrupted(run, KeyboardInterrupt())) == "interrupted"
    assert not run.path.exists()


@pytest.mark.parametrize(
    ("form", "shows", "told"), [("text", True, False), ("json", True, True), ("text", False, True)]
)
def test_where_it_is_kept_is_said_once_where_the_report_is_shown(
    form: str, shows: bool, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal came in a pass after one that is complete: the text itself says where, if it can be written."""
    run = build(tmp_path)
    monkeypatch.chdir(tmp_path)

    def show(*_: Any) -> None:
        if not shows:
            raise OSError("nobody reads it")

    monkeypatch.setattr(collection, "_create", lambda *_: run)
    monkeypatch.setattr(collection, "_measure", lambda *_: EndedBySignal(signal.SIGTERM))
    monkeypatch.setattr(products, "write", lambda *_: ("", None))
    monkeypatch.setattr(products, "show_run", show)
    shown = products.Shown(form, 8, None, 100)
    server = cast(Any, SimpleNamespace(end=lambda: None))
    failure = collection.carry_out(tmp_path, cast(Any, None), (), server, shown, None, None, keep_raw=True)
    name = run.path.relative_to(tmp_path)
    where = f"; kept in {name}, without a trace: hwprof report {name}" if told else ""
    assert str(failure) == f"ended by SIGTERM{where}"
