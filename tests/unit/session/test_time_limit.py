"""A worker that takes too long, or hangs, is ended: with a made-up clock and nobody to be ended."""

from __future__ import annotations

import os
import threading
import time

import pytest

from hwprof.session.time_limit import TimeLimit


class Waits:
    """A clock that goes on as far as somebody waits, and ``heard`` at these times (s)."""

    def __init__(self, heard_s: list[float]) -> None:
        self.now_s = 100.0
        self.heard_s = heard_s
        self.limit: TimeLimit | None = None

    def wait(self, seconds: float) -> bool:
        until_s = self.now_s + seconds
        if self.heard_s and self.heard_s[0] < until_s:
            self.now_s = self.heard_s.pop(0)
            assert self.limit is not None
            self.limit.heard()
        self.now_s = max(self.now_s, until_s)
        return False


@pytest.mark.parametrize(
    ("limit_s", "silence_s", "heard_s", "reason", "ended_s"),
    [
        (50.0, None, [], "longer than 50 s", 150.0),
        (None, 20.0, [], "not a step in 20 s", 120.0),
        (None, 20.0, [110.0, 125.0], "not a step in 20 s", 145.0),
        (50.0, 20.0, [110.0, 125.0, 140.0], "longer than 50 s", 150.0),
    ],
)
def test_it_is_ended_when_it_is_late_or_silent(
    limit_s: float | None,
    silence_s: float | None,
    heard_s: list[float],
    reason: str,
    ended_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits, killed = Waits(heard_s), []
    monkeypatch.setattr(time, "monotonic", lambda: waits.now_s)
    monkeypatch.setattr(os, "killpg", lambda pid, number: killed.append((pid, waits.now_s)))
    limit = waits.limit = TimeLimit(limit_s, silence_s, 7)
    monkeypatch.setattr(limit, "_over", waits)
    limit.heard()
    limit._began_s = waits.now_s
    limit._watch()
    assert reason in (limit.reason or "") and killed == [(7, ended_s)]


def test_one_that_ends_in_time_is_left_alone() -> None:
    before = set(threading.enumerate())
    for limit in (TimeLimit(60.0, 60.0, 1 << 30), TimeLimit(None, None, 1 << 30)):
        with limit:
            limit.heard()
        assert limit.reason is None and set(threading.enumerate()) <= before
