"""What several tests of the real kernel start from."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.perf.collector import PerfCollector
from hwprof.collector.contract import PassContext
from tests.support.requirements import missing

SOFTWARE = ["task-clock", "page-faults", "context-switches", "cpu-migrations"]


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Callable[[], PerfCollector]]:
    """Starts a collector of software events on the calling thread; stops it at the end."""
    started: list[PerfCollector] = []

    def start() -> PerfCollector:
        made = PerfCollector()
        available = made.availability()
        if not available.ok:
            missing(f"perf events ({available.reason})")
        made.start(PassContext("measure", os.getpid(), threading.get_native_id(), tmp_path, {"events": SOFTWARE}))
        started.append(made)
        return made

    yield start
    for made in started:
        made.stop()
