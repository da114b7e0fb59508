"""Workers that are forked by a process which has torch imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwprof.session.fork_server import ForkServer
from hwprof.session.messages import Failed, Order, PhaseBegins
from hwprof.session.plan import PassPlan
from hwprof.session.worker_process import WorkerProcess
from hwprof.workload.spec import WorkloadSpec
from tests.support.processes import alive, parent_of

MODEL = "my:model"  # of which nothing is imported beforehand, but torch
LATE = {"ONEDNN_VERBOSE_TIMESTAMP": "1"}

STARTS_ONE = """
import sys, time
from pathlib import Path
from hwprof.session.fork_server import ForkServer
from hwprof.session.worker_process import WorkerProcess
place = Path(sys.argv[1])
server = ForkServer("my:model")
worker = WorkerProcess(place / "order.json", place / "worker.log", server=server, environment={})
print(server.pid, worker.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(MODEL) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an order."""
    plan = PassPlan(name="measure", iterations=1, warmup=0, in_process=(), external=())
    order = Order(
        workload=WorkloadSpec(model=MODEL), plan=plan, folder=str(tmp_path / "raw"), describe=False, save_to=None
    )
    order.write(tmp_path / "order.json")
    return tmp_path


def started(place: Path, server: ForkServer, environment: dict[str, str] | None = None) -> WorkerProcess:
    return WorkerProcess(place / "order.json", place / "worker.log", server=server, environment=environment or {})


def test_a_worker_is_a_copy_that_leads_a_group_of_its_own(place: Path, server: ForkServer) -> None:
    worker = started(place, server, LATE)
    assert parent_of(worker.pid) == server.pid
    assert os.getpgid(worker.pid) == worker.pid
    assert "torch" in Path(f"/proc/{worker.pid}/maps").read_text()
    assert len(list(Path(f"/proc/{worker.pid}/task").iterdir())) == 1
    worker.end()
    assert not alive(worker.pid)


def test_it_says_what_it_does_and_its_exit_code_is_known(tmp_path: Path, server: ForkServer) -> None:
    worker = started(tmp_path, server)  # there is no order
    failed = worker.inbox.next()
    assert isinstance(failed, Failed) and "order.json" in failed.message
    assert worker.inbox.next() is None
    assert worker.wait() == 1
    assert worker.wait() == 1
    worker.end()


def test_what_ends_it_is_known(place: Path, server: ForkServer) -> None:
    worker = started(place, server)
    assert isinstance(worker.inbox.next(), PhaseBegins)
    os.kill(worker.pid, signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    worker.end()


def test_what_must_be_known_when_libraries_load_asks_for_a_fresh_process(tmp_path: Path, server: ForkServer) -> None:
    worker = started(tmp_path, server, {"OMP_WAIT_POLICY": "PASSIVE"})
    assert parent_of(worker.pid) == os.getpid()
    assert worker.wait() == 1
    worker.end()


def test_without_its_server_a_worker_is_a_fresh_process(tmp_path: Path) -> None:
    with ForkServer(MODEL) as server:
        os.kill(server.pid, signal.SIGKILL)
        worker = started(tmp_path, server)
        assert parent_of(worker.pid) == os.getpid()
        assert isinstance(worker.inbox.next(), Failed)
        assert worker.wait() == 1
        worker.end()


def test_nothing_stays_open(place: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with ForkServer(MODEL) as server:
        worker = started(place, server)
        assert parent_of(worker.pid) == server.pid
        worker.end()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_neither_outlives_who_started_them(place: Path) -> None:
    command = [sys.executable, "-c", STARTS_ONE, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert all(map(alive, pids)) and len(pids) == 2
        starter.kill()
    deadline = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if alive(pid)] == []
