"""What the machine did while a pass measured, beside the pass's own work."""

from __future__ import annotations

import time

from hwprof.hardware import cgroup, machine
from hwprof.run.manifest import PassRecord
from hwprof.session.quiet import Others


class Meanwhile:
    """From its making on, until ``keep``."""

    def __init__(self) -> None:
        self._stolen_ns, self._throttled, self._others = machine.stolen_ns(), cgroup.throttling(), Others()
        self.begin_ns = time.monotonic_ns()

    def keep(self, record: PassRecord) -> None:
        """As far as the kernel tells."""
        record.measured_ns = time.monotonic_ns() - self.begin_ns
        record.others_ns = self._others.taken_ns()
        if self._stolen_ns is not None:
            record.stolen_ns = (machine.stolen_ns() or self._stolen_ns) - self._stolen_ns
        if self._throttled is not None and (now := cgroup.throttling()) is not None:
            record.throttled = now.times - self._throttled.times
            record.throttled_ns = now.stopped_ns - self._throttled.stopped_ns
