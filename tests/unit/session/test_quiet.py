"""Waiting for a quiet machine, on a made-up clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.session.planner import plan_passes
from hwprof.session.quiet import NOT_TOLD, WINDOW_S, WINDOWS, Ticks, read_ticks, wait_until_quiet


class Machine:
    """Of each window, what share of its processors is busy; the last one goes on."""

    def __init__(self, *busy: float) -> None:
        self.now = 0.0
        self._busy = list(busy)
        self._ticks = Ticks(1000, 5000)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        busy = self._busy.pop(0) if len(self._busy) > 1 else self._busy[0]
        self._ticks = Ticks(self._ticks.busy + round(1000 * busy), self._ticks.all + 1000)

    def wait(self, longest_s: float) -> str | None:
        return wait_until_quiet(longest_s, lambda: self._ticks, self.sleep, lambda: self.now)


def test_a_quiet_machine_is_watched_for_as_long_as_it_takes_to_know() -> None:
    machine = Machine(0.02)
    assert machine.wait(60) is None
    assert machine.now == WINDOWS * WINDOW_S


def test_it_waits_until_others_have_ended_and_a_short_rest_is_not_the_end() -> None:
    machine = Machine(0.9, 0.0, 0.9, 0.5, 0.0, 0.0, 0.06, 0.0)
    assert machine.wait(60) is None
    assert machine.now == (7 + WINDOWS) * WINDOW_S


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    machine = Machine(0.5)
    why_not = machine.wait(10)
    assert why_not is not None and " 2.0 processors" in why_not
    assert machine.now == 10


def test_what_the_kernel_does_not_tell_is_no_figure() -> None:
    told = iter([Ticks(1, 10), None])
    assert wait_until_quiet(10, lambda: next(told), lambda seconds: None) == NOT_TOLD


def test_idle_and_waiting_for_a_disk_are_not_busy_and_guests_are_not_counted_twice(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 10 20 3000 400 5 6 7 90 9\ncpu0 1 2 3 4\n")
    assert read_ticks(stat) == Ticks(100 + 10 + 20 + 5 + 6 + 7, 3548)


@pytest.mark.parametrize("text", ["", "cpu x", "intr 5", "cpu 1 2"])
def test_a_kernel_that_does_not_tell(tmp_path: Path, text: str) -> None:
    stat = tmp_path / "stat"
    stat.write_text(text)
    assert read_ticks(stat) is None
    assert read_ticks(tmp_path / "none") is None
    assert wait_until_quiet(60, lambda: None, _never) == NOT_TOLD


def _never(seconds: float) -> None:
    raise AssertionError(seconds)


def test_the_passes_that_time_wait() -> None:
    plans = plan_passes([], ["measure", "trace"], iterations=2, warmup=0, wait_quiet_s=30.0)
    assert {plan.name: plan.wait_quiet_s for plan in plans} == {"measure": 30.0, "trace": 30.0}
