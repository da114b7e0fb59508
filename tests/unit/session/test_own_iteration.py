"""An iteration for one collector alone comes when the others have stopped, and never at the run's expense."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hwprof.collector.contract import Availability, Collected, Collector, PassContext
from hwprof.errors import HwprofError
from hwprof.session.in_process import RunningCollectors


class Quiet(Collector):
    """Looks all the time."""

    name = "quiet"

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def availability(self) -> Availability:
        return Availability()

    def start(self, context: PassContext) -> None: ...

    def stop(self) -> Collected:
        self.log.append(f"{self.name} stops")
        return Collected()


class Loud(Quiet):
    """Looks when the others have stopped."""

    name = "loud"
    own_iterations = 1

    @contextmanager
    def own_iteration(self) -> Iterator[None]:
        self.log.append("loud begins")
        try:
            yield
        finally:
            self.log.append("loud ends")


def test_it_comes_when_the_others_have_stopped() -> None:
    log: list[str] = []
    collectors = RunningCollectors()
    collectors.running = {"loud": Loud(log), "quiet": Quiet(log)}
    assert set(collectors.stop(lambda name: log.append(f"iteration for {name}"))) == {"quiet", "loud"}
    assert log == ["quiet stops", "loud begins", "iteration for loud", "loud ends", "loud stops"]


def test_there_are_no_more_when_the_user_does_not_want_to_wait() -> None:
    log: list[str] = []
    loud = Loud(log)
    loud.own_iterations = 5
    collectors = RunningCollectors()
    collectors.running = {"loud": loud}
    collectors.stop(lambda name: log.append("iteration"), lambda: log.count("iteration") == 2)
    assert log.count("iteration") == 2 and log[-1] == "loud stops"


def test_there_are_as_many_as_it_wants() -> None:
    log: list[str] = []
    loud = Loud(log)
    loud.own_iterations = 2
    collectors = RunningCollectors()
    collectors.running = {"loud": loud}
    collectors.stop(lambda name: log.append("iteration"))
    assert log == [*["loud begins", "iteration", "loud ends"] * 2, "loud stops"]


def test_nobody_asks_for_it_and_there_is_none() -> None:
    log: list[str] = []
    collectors = RunningCollectors()
    collectors.running = {"quiet": Quiet(log)}
    collectors.stop(lambda name: log.append(f"iteration for {name}"))
    assert log == ["quiet stops"]


def test_a_workload_that_fails_in_it_costs_that_collectors_data_only() -> None:
    log: list[str] = []
    collectors = RunningCollectors()
    collectors.running = {"loud": Loud(log), "quiet": Quiet(log)}

    def fail(name: str) -> None:
        raise HwprofError("the model has had enough")

    assert set(collectors.stop(fail)) == {"quiet"}
    assert log == ["quiet stops", "loud begins", "loud ends"]
    (record,) = collectors.records
    assert (record.name, record.state, record.reason) == ("loud", "failed", "the model has had enough")
