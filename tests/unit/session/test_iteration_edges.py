"""Who looks between iterations, and fails there, loses its own data only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hwprof.collector.contract import Availability, Collected, Collector, PassContext
from hwprof.session.in_process import RunningCollectors


class Looking(Collector):
    """At the edges of iterations; fails at the second one if it is to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.edges = 0
        self._fails = fails

    def availability(self) -> Availability:
        return Availability()

    def start(self, context: PassContext) -> None: ...

    def stop(self) -> Collected:
        return Collected()

    def iteration_edge(self) -> None:
        self.edges += 1
        if self._fails and self.edges == 2:
            raise OSError("gone")

    def between_iterations(self) -> None:
        self.iteration_edge()


@pytest.mark.parametrize("asked", [RunningCollectors.iteration_edge, RunningCollectors.between_iterations])
def test_one_that_fails_is_recorded_and_not_asked_again(asked: Callable[[RunningCollectors], None]) -> None:
    collectors = RunningCollectors()
    good, bad = Looking(), Looking(fails=True)
    collectors.running = {"bad": bad, "good": good}
    for _ in range(4):
        asked(collectors)
    assert (good.edges, bad.edges) == (4, 2)
    assert [(record.name, record.state) for record in collectors.records] == [("bad", "failed")]
    assert set(collectors.stop()) == {"good"}
