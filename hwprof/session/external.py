"""The external collectors of a pass, as the supervisor has them: they watch the worker by its pid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hwprof.collector import registry
from hwprof.collector.contract import Collected, Collector, PassContext
from hwprof.run.manifest import CollectorRecord
from hwprof.session.failure import alone
from hwprof.session.messages import Message, Phase, PhaseBegins, Step
from hwprof.session.plan import CollectorPlan, PassPlan


class ExternalCollectors:
    """Those of a worker; one that fails loses its own data only."""

    def __init__(self, plan: PassPlan, folder: Path, pid: int) -> None:
        self.records: list[CollectorRecord] = []  # of those that failed
        self._running: list[tuple[CollectorPlan, Collector]] = []
        for planned in plan.external:
            raw = folder / planned.name
            with alone(planned, self.records):
                raw.mkdir(exist_ok=True)
                collector = registry.create(planned.name)
                collector.start(PassContext(plan.name, pid, pid, raw, planned.options))
                self._running.append((planned, collector))

    def hear(self, message: Message) -> None:
        """They hear how far the worker is."""
        if isinstance(message, Step):
            self._tell(lambda collector: collector.step())
        elif isinstance(message, PhaseBegins) and message.phase is Phase.WARMING_UP:
            self._tell(lambda collector: collector.work_begins())
        elif isinstance(message, PhaseBegins) and message.phase is Phase.COLLECTING:
            self._tell(lambda collector: collector.work_ends())

    def _tell(self, say: Callable[[Collector], None]) -> None:
        for planned, collector in list(self._running):
            failed = len(self.records)
            with alone(planned, self.records):
                say(collector)
            if len(self.records) > failed:
                self._running.remove((planned, collector))
                with alone(planned, []):  # it gives back what it has; its data is lost already
                    collector.stop()

    def stop(self) -> list[tuple[CollectorPlan, Collected]]:
        """Stops all; what each handed over."""
        collected = []
        for planned, collector in self._running:
            with alone(planned, self.records):
                collected.append((planned, collector.stop()))
        return collected
