"""Who looks between iterations, and fails there, loses its own data only."""

from __future__ import annotations

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


def test_one_that_fails_is_recorded_and_not_asked_again() -> None:
    collectors = RunningCollectors()
    good, bad = Looking(), Looking(fails=True)
    collectors.running = {"bad": bad, "good": good}
    for _ in range(4):
        collectors.iteration_edge()
    assert (good.edges, bad.edges) == (4, 2)
    assert [(record.name, record.state) for record in collectors.records] == [("bad", "failed")]
    assert set(collectors.stop()) == {"good"}
