"""When a worker that is stopped is told of, and for how long it was: by looks at chosen times."""

from __future__ import annotations

import pytest

from hwprof import processes
from hwprof.session.stopped_worker import STOPPED_S, StoppedWorker

WORKER = 700


@pytest.mark.parametrize(
    ("stops", "told", "stopped_s"),
    [
        ([(100.0, 103.0)], 0, 0.0),  # for a moment
        ([(100.0, 100.0 + 3 * STOPPED_S)], 1, 3 * STOPPED_S),
        ([(100.0, 100.0 + 3 * STOPPED_S), (200.0, 200.0 + 2 * STOPPED_S)], 2, 5 * STOPPED_S),
        ([(100.0 + 3 * turn, 101.0 + 3 * turn) for turn in range(60)], 0, 0.0),  # again and again
        ([(290.0, 1000.0)], 1, 10.0),  # to the end
    ],
)
def test_a_worker_that_stays_stopped_is_told_once(
    stops: list[tuple[float, float]], told: int, stopped_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, said = 0.0, list[str]()
    monkeypatch.setattr(
        processes, "is_stopped", lambda pid: pid == WORKER and any(since <= now_s <= to for since, to in stops)
    )
    stopped = StoppedWorker(WORKER, said.append)
    for second in range(301):
        now_s = float(second)
        stopped.look(now_s)
    assert len(said) == told and all(f"kill -CONT {WORKER}" in text for text in said)
    assert stopped.stopped_s == stopped_s
