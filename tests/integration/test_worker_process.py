"""A worker waits for its turn, and is gone with its supervisor: tried with processes that stand for the worker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hwprof.session.messages import Phase, PhaseBegins, Step
from hwprof.session.worker_process import WorkerProcess

STAND_IN = """
import os, sys, time
from hwprof.session import messages
from hwprof.session.messages import Phase, PhaseBegins, Step
tells, waits = int(sys.argv[-2]), int(sys.argv[-1])
os.write(tells, messages.encode(PhaseBegins(Phase.IMPORTING)))
if os.read(waits, 1):
    os.write(tells, messages.encode(Step()))
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> list[str]:
    """What stands before the worker's command: an interpreter that runs something else with the same descriptors."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    return [sys.executable, str(tmp_path / "stand_in.py")]


def started(place: Path, launcher: list[str]) -> WorkerProcess:
    return WorkerProcess(place / "order.json", place / "worker.log", launcher=launcher, environment={})


def test_it_says_what_it_does_and_goes_on_in_its_turn(tmp_path: Path, stand_in: list[str]) -> None:
    worker = started(tmp_path, stand_in)
    assert worker.inbox.next() == PhaseBegins(Phase.IMPORTING)
    worker.go_on()
    assert worker.inbox.next() == Step()
    assert worker.inbox.next() is None
    assert worker.wait() == 0
    worker.end()


def test_one_that_never_had_its_turn_is_ended(tmp_path: Path, stand_in: list[str]) -> None:
    worker = started(tmp_path, stand_in)
    assert worker.inbox.next() == PhaseBegins(Phase.IMPORTING)
    worker.end()
    worker.end()
    assert worker.wait() <= 0  # it saw that nobody is left, or was told to end


def test_a_worker_that_is_gone_is_no_error_before_it_is_listened_to(tmp_path: Path) -> None:
    worker = started(tmp_path, ["true"])
    assert worker.wait() == 0
    worker.go_on()
    assert worker.inbox.next() is None
    worker.end()


def test_what_cannot_be_started_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="No such file"):
        started(tmp_path, ["/no/such/launcher"])
    assert len(list(Path("/proc/self/fd").iterdir())) == before
