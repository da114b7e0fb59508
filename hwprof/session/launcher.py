"""The collector that launches a worker, as the supervisor has it: its tool starts it and is read afterwards."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hwprof.collector import registry
from hwprof.collector.contract import Collected, Collector
from hwprof.errors import HwprofError
from hwprof.run.manifest import CollectorRecord
from hwprof.session.failure import alone
from hwprof.session.plan import CollectorPlan, PassPlan


class Launching:
    """What launches the worker of a pass: one collector, or nothing."""

    def __init__(self, plan: PassPlan, folder: Path) -> None:
        """Raises ``HwprofError`` where more than one collector wants to launch the worker."""
        self.records: list[CollectorRecord] = []  # where it failed
        self._launcher: tuple[CollectorPlan, Collector, Path] | None = None
        if len(plan.launcher) > 1:
            raise HwprofError(f"{' and '.join(planned.name for planned in plan.launcher)} cannot share a pass")
        for planned in plan.launcher:
            raw = folder / planned.name
            raw.mkdir(exist_ok=True)
            self._launcher = (planned, registry.create(planned.name), raw)

    def command(self) -> list[str]:
        """What stands before the worker's own command."""
        if self._launcher is None:
            return []
        planned, collector, raw = self._launcher
        return list(collector.command(raw, planned.options))

    def clean_up(self, pid: int) -> None:
        """When the worker is gone, however it ended."""
        if self._launcher is not None:
            planned, collector, raw = self._launcher
            with alone(planned, self.records):
                collector.clean_up(raw, pid)

    def collect_results(self, pid: int, records: list[CollectorRecord]) -> list[tuple[CollectorPlan, Collected]]:
        """What the tool has written, when the worker has ended well. ``records`` are the worker's: where its instance
        of the collector failed there is nothing to read, else both instances' reports become one."""
        if self._launcher is None:
            return []
        planned, collector, raw = self._launcher
        mine = next((record for record in records if record.name == planned.name), None)
        if mine is None or mine.state != "ran":
            return []
        records.remove(mine)
        found: list[tuple[CollectorPlan, Collected]] = []
        with alone(planned, self.records):
            collected = collector.collect_results(raw, pid)
            collected.notes[:0] = mine.notes
            if collected.detail is None and mine.detail:
                records.append(msgspec.structs.replace(mine, notes=[]))
            found.append((planned, collected))
        return found
