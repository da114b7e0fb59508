"""The worker's collectors while they run. Imports no table library: it is part of the process that is measured."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hwprof.collector import registry
from hwprof.collector.contract import Collected, Collector, PassContext, counts_at_edges, looks_between_iterations
from hwprof.run.manifest import CollectorRecord
from hwprof.session.failure import alone
from hwprof.session.messages import Order
from hwprof.session.plan import CollectorPlan

if TYPE_CHECKING:  # of the room that imports torch
    from hwprof.workload.protocol import Stages


class RunningCollectors:
    """The collectors of a pass in its worker, in-process and launcher: one that fails loses its own data, is recorded,
    and never the run."""

    def __init__(self) -> None:
        self.running: dict[str, Collector] = {}
        self.records: list[CollectorRecord] = []  # of those that failed
        self.plans: dict[str, CollectorPlan] = {}

    def load(self, order: Order) -> None:
        """Imports them, before the model's code runs, which may put another clock into ``time`` for its tests. What is
        wrong with one is told when it starts."""
        for planned in (*order.plan.in_process, *order.plan.launcher):
            with suppress(Exception):
                registry.implementation(registry.declaration(planned.name))

    def start(self, order: Order, step: Callable[[], None]) -> None:
        """Starts those of the plan. ``step`` is what a slow pass's collector calls at each leaf layer's end."""
        for planned in (*order.plan.in_process, *order.plan.launcher):
            self.plans[planned.name] = planned
            raw = Path(order.folder) / planned.name
            context = PassContext(
                pass_name=order.plan.name,
                pid=os.getpid(),
                main_tid=os.getpid(),
                raw=raw,
                options=planned.options,
                step=step,
            )
            with self.guard(planned.name):
                raw.mkdir(exist_ok=True)
                collector = registry.create(planned.name)
                collector.start(context)
                self.running[planned.name] = collector

    def iteration_edge(self) -> None:
        """Just before and just after an iteration."""
        looking = [name for name, one in self.running.items() if looks_between_iterations(one)]
        self._each(looking, lambda collector: collector.iteration_edge())

    def between_iterations(self) -> None:
        """Behind one that another one follows."""
        self._each(self.running, lambda collector: collector.between_iterations())

    def _each(self, names: Iterable[str], do: Callable[[Collector], None]) -> None:
        for name in list(names):
            failed = len(self.records)
            with self.guard(name):
                do(self.running[name])
            if len(self.records) > failed:
                del self.running[name]

    def own_processes(self) -> list[int]:
        """The processes that work for them."""
        found: list[int] = []
        for name, collector in self.running.items():
            with self.guard(name):
                found += collector.own_processes()
        return found

    def counters(self) -> list[Collector]:
        """Those that read counters at span edges."""
        return [collector for collector in self.running.values() if counts_at_edges(collector)]

    def stages_of(self, name: str, stage: Stages) -> Stages:
        """``stage``, with what a collector does in its own iterations inside of it."""
        collector = self.running[name]

        @contextmanager
        def both(name: str) -> Iterator[None]:
            with stage(name), collector.own_stage(name):
                yield

        return both

    def stop(
        self, iterate: Callable[[str], None] = lambda name: None, is_hurried: Callable[[], bool] = lambda: False
    ) -> dict[str, Collected]:
        """Stops all; what each handed over. ``iterate`` is one more iteration, done for a collector (its name) that
        looks only when the others have stopped, as often as it wants, until it ``is_hurried``."""
        collected = {}
        for name, collector in sorted(self.running.items(), key=lambda item: item[1].own_iterations > 0):
            with self.guard(name):
                for _ in range(collector.own_iterations):
                    if is_hurried():
                        break
                    with collector.own_iteration():
                        iterate(name)
                collected[name] = collector.stop()
        return collected

    @contextmanager
    def guard(self, name: str) -> Iterator[None]:
        """What goes wrong inside costs this collector's data only."""
        with alone(self.plans.get(name, CollectorPlan(name)), self.records):
            try:
                yield
            except BaseException:
                traceback.print_exc()
                raise
