"""The collector that launches a worker, as the supervisor has it: its tool starts it and is read afterwards."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from hwprof.collector import registry
from hwprof.collector.contract import Launcher
from hwprof.errors import HwprofError
from hwprof.run.manifest import CollectorRecord, EventInfo, MetricDefinition
from hwprof.session.in_process import failure
from hwprof.session.plan import CollectorPlan, PassPlan


class Launching:
    """What launches the worker of a pass: one collector, or nothing."""

    def __init__(self, plan: PassPlan, folder: Path) -> None:
        """Raises ``HwprofError`` where more than one collector wants to launch the worker, or one cannot."""
        self.records: list[CollectorRecord] = []
        self.events: list[EventInfo] = []
        self.metrics: list[MetricDefinition] = []
        self._launcher: tuple[CollectorPlan, Launcher, Path] | None = None
        if len(plan.launcher) > 1:
            raise HwprofError(f"{' and '.join(planned.name for planned in plan.launcher)} cannot share a pass")
        for planned in plan.launcher:
            collector = registry.create(planned.name)
            if not isinstance(collector, Launcher):
                raise HwprofError(f"the collector {planned.name} does not say how it launches a worker")
            raw = folder / planned.name
            raw.mkdir(exist_ok=True)
            self._launcher = (planned, collector, raw)

    def command(self) -> list[str]:
        """What stands before the worker's own command."""
        if self._launcher is None:
            return []
        planned, launcher, raw = self._launcher
        return list(launcher.command(raw, planned.options))

    def collect_results(self, pid: int, records: list[CollectorRecord]) -> dict[str, list[pl.DataFrame]]:
        """The tool's rows by table, when the worker has ended well. ``records`` are the worker's: where its instance of
        the collector failed there is nothing to read, else this one's word takes the place of that one's."""
        if self._launcher is None:
            return {}
        planned, launcher, raw = self._launcher
        mine = next((record for record in records if record.name == planned.name), None)
        if mine is None or mine.state != "ran":
            return {}
        records.remove(mine)
        try:
            collected = launcher.collect_results(raw, pid)
        except Exception as error:  # whatever a collector does wrong costs its own data only
            self.records.append(failure(planned.name, error))
            return {}
        self.events, self.metrics = collected.events, collected.metrics
        self.records.append(
            CollectorRecord(
                name=planned.name,
                state="ran",
                notes=[*mine.notes, *collected.notes],
                detail={**mine.detail, **collected.detail},
            )
        )
        return {table: [frame] for table, frame in collected.tables.items()}
