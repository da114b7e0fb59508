"""When the worker of a pass is let go on: with a stand-in for its process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwprof.session import supervised_pass
from hwprof.session.plan import CollectorPlan, PassPlan
from hwprof.session.supervised_pass import Means, Pass
from hwprof.workload.spec import WorkloadSpec
from tests.support.synthetic_run import build


class StandIn:
    """A worker that notes when it was let go on."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.pid = 1
        self.gone_on = False

    def go_on(self) -> None:
        self.gone_on = True


class Silent:
    """Nobody is told anything."""

    def phase(self, pass_name: str, text: str, total: int | None) -> None: ...

    def step(self) -> None: ...

    def reached(self, done: int, total: int) -> None: ...

    def tell(self, pass_name: str, text: str) -> None: ...


@pytest.mark.parametrize(
    ("slow", "external", "gone_on"),
    [
        (True, (), True),  # nobody takes its times: it need not wait for the pass before to be written
        (False, (), False),  # the one before still adds up, on the same processors
        (True, (CollectorPlan("sampler"),), False),  # who watches it from outside is not there yet
    ],
)
def test_only_a_pass_that_nobody_times_goes_on_before_its_turn(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slow: bool,
    external: tuple[CollectorPlan, ...],
    gone_on: bool,
) -> None:
    started: list[StandIn] = []

    def start(*_: Any, **__: Any) -> StandIn:
        started.append(StandIn())
        return started[-1]

    monkeypatch.setattr(supervised_pass, "WorkerProcess", start)
    run = build(tmp_path)
    plan = PassPlan(
        name="instrumented", iterations=1, warmup=1, in_process=(), external=external, times_from="measure", slow=slow
    )
    means = Means(run, WorkloadSpec(model="yolov8n"), Silent(), None, weights=-1)
    Pass(means, plan, first=False).prepare()
    assert [worker.gone_on for worker in started] == [gone_on]
