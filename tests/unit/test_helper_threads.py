"""Threads that begin, and are waited for no longer than they work, whatever became of Python's own."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from hwprof import helper_threads
from hwprof.helper_threads import Handover, HelperThread, each

SOON_S: Final = 20.0

ROOT: Final = Path(__file__).parents[2]
WITH_PYTHONS: Final = {
    "collectors/power_meter/program.py",
    "collectors/sampler/recorder.py",
    "collectors/shared/periodic_sampling.py",
    "hwprof/cli/progress_lines.py",
    "hwprof/cli/room.py",
    "hwprof/collector/conformance.py",
    "hwprof/hardware/peaks/team.py",
    "hwprof/session/interruption.py",
    "hwprof/session/requirements.py",
    "hwprof/session/time_limit.py",
    "hwprof/session/watcher.py",
    "hwprof/trace/viewer.py",
}
"""What starts threads of Python's own: of the supervisor, its external collectors, and commands that measure nothing.
None of it runs in a process with a model."""


def begin_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a model's code may have it."""
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    for deleted in ("run", "_bootstrap", "_bootstrap_inner"):
        monkeypatch.delattr(threading.Thread, deleted)
    for replaced in ("Thread", "Lock", "Condition", "Event"):
        monkeypatch.setattr(threading, replaced, None)


def test_it_does_its_work_in_a_thread_of_its_own_whatever_became_of_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_nothing(monkeypatch)
    helper = HelperThread(threading.get_ident)
    assert helper.result() == helper.result() != threading.get_ident()
    assert helper.has_ended()


def test_what_its_work_raises_is_raised_where_it_is_waited_for() -> None:
    helper = HelperThread(lambda: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            helper.result()


def test_it_says_whether_it_has_ended() -> None:
    handover = Handover[int]()
    helper = HelperThread(handover.take)
    assert not helper.has_ended()
    assert handover.put(3, SOON_S) and helper.result() == 3 and helper.has_ended()


def test_one_item_lies_ready_and_no_more() -> None:
    handover = Handover[int]()
    assert handover.put(1, 0) and not handover.put(2, 0.01)
    assert handover.take() == 1
    assert handover.put(3, 0) and handover.take() == 3


def test_all_of_many_items_come_in_their_order() -> None:
    handover = Handover[int]()
    taking = HelperThread(lambda: [handover.take() for _ in range(1_000)])
    assert all(handover.put(number, SOON_S) for number in range(1_000))
    assert taking.result() == list(range(1_000))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("items", [0, 1, 2, 20])
def test_what_several_do_comes_in_order(threads: int, items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_nothing(monkeypatch)
    assert each(lambda item: item * item, range(items), threads) == [item * item for item in range(items)]


def test_several_do_it_at_a_time() -> None:
    meet = threading.Barrier(3)
    assert len(set(each(lambda _: (meet.wait(SOON_S), threading.get_ident())[1], range(3), 3))) == 3


def test_one_does_what_no_other_one_can_be_had_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def start_none(_: Callable[[], None], __: tuple[()]) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(helper_threads, "start_new_thread", start_none)
    assert each(str, range(3), 2) == ["0", "1", "2"]


def test_the_others_do_no_more_when_one_fails() -> None:
    begun = []

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise ValueError(item)
        time.sleep(0.01)

    with pytest.raises(ValueError, match="0"):
        each(work, range(100), 2)
    assert len(begun) < 100


def test_pythons_own_threads_start_where_no_models_code_runs() -> None:
    starts = re.compile(r"\b(?:threading\.(?:Thread|Timer)|ThreadPoolExecutor)\(")
    files = [file for room in ("hwprof", "collectors") for file in (ROOT / room).rglob("*.py")]
    found = {str(file.relative_to(ROOT)) for file in files if starts.search(file.read_text(encoding="utf-8"))}
    assert found == WITH_PYTHONS
