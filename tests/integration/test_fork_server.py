"""Workers that are forked by a process which has torch imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hwprof.run.directory import RunDirectory
from hwprof.session.fork_server import ForkServer
from hwprof.session.messages import Failed
from hwprof.session.worker_process import WorkerProcess
from tests.support.command import start_hwprof
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


IGNORES_CHILDREN = """
import signal, sys
from pathlib import Path
from hwprof.session.fork_server import ForkServer
from hwprof.session.worker_process import WorkerProcess
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
place = Path(sys.argv[1])
with ForkServer("my:model") as server:
    for _ in range(2):
        worker = WorkerProcess(place / "none.json", place / "worker.log", server=server, environment={})
        print(worker.wait())
        worker.end()
    print(server.gone)
"""

IS_INTERRUPTED = """
import os, signal, sys, threading
from pathlib import Path
from hwprof.session.fork_server import ForkServer
signal.siginterrupt(signal.SIGINT, False)  # as libraries do: what a signal interrupts is restarted
with ForkServer("my:model") as server:
    os.kill(server.pid, signal.SIGSTOP)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        server.fork(Path("order.json"), 2, (), {})
    except KeyboardInterrupt:
        print("interrupted", server.gone)
"""

SMALL = "import torch\ndef model():\n    return torch.nn.Linear(3, 2)\n"
SECOND_WAITS = """
import os, sys, time, torch
from pathlib import Path

class Model(torch.nn.Linear):
    def forward(self, x):
        # the pass before has measured, and must not be over before the one that waits for its turn is killed
        while "hwprof.session.description" in sys.modules and not Path("killed").exists():
            time.sleep(0.01)
        return super().forward(x)

def model():
    builders = Path("builders")
    builders.mkdir(exist_ok=True)
    if len(list(builders.iterdir())) == 1:
        (builders / str(os.getpid())).touch()
        time.sleep(600)  # until it is killed
    (builders / str(os.getpid())).touch()
    return Model(3, 2)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(MODEL) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an order that never comes: whoever reads it waits until it is ended."""
    os.mkfifo(tmp_path / "order.json")
    return tmp_path


def started(place: Path, server: ForkServer, environment: dict[str, str] | None = None) -> WorkerProcess:
    return WorkerProcess(place / "order.json", place / "worker.log", server=server, environment=environment or {})


@contextmanager
def order_that_never_comes(place: Path) -> Iterator[None]:
    """Begins when a worker asks for it."""
    descriptor, deadline = None, time.monotonic() + 60
    while descriptor is None and time.monotonic() < deadline:
        try:
            descriptor = os.open(place / "order.json", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            time.sleep(0.01)
    assert descriptor is not None, "no worker asked for its order"
    yield
    os.close(descriptor)


@contextmanager
def waiting(place: Path, server: ForkServer) -> Iterator[WorkerProcess]:
    """One that has begun, and waits for its order."""
    worker = started(place, server)
    with order_that_never_comes(place):
        yield worker
        worker.end()


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
    with waiting(place, server) as worker:
        os.kill(worker.pid, signal.SIGKILL)
        assert worker.wait() == -signal.SIGKILL


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
        assert not worker.orphaned  # it failed by itself
        worker.end()


def test_of_a_server_that_somebody_has_stopped_no_answer_is_waited_for(tmp_path: Path) -> None:
    with ForkServer(MODEL) as server:
        os.kill(server.pid, signal.SIGSTOP)
        worker = started(tmp_path, server)
        assert parent_of(worker.pid) == os.getpid() and server.gone
        assert worker.wait() == 1
        worker.end()


def test_a_copy_ends_with_its_server_and_says_so(place: Path) -> None:
    with ForkServer(MODEL) as server, waiting(place, server) as worker:
        os.kill(server.pid, signal.SIGKILL)
        assert worker.wait() == -signal.SIGKILL
        assert worker.orphaned


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
        with order_that_never_comes(place):
            assert all(map(alive, pids)) and len(pids) == 2
            starter.kill()
            deadline = time.monotonic() + 60
            while any(map(alive, pids)) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert [pid for pid in pids if alive(pid)] == []


def test_whoever_ignores_the_end_of_children_has_exit_codes_all_the_same(place: Path) -> None:
    """It is inherited, by hwprof and by its server."""
    done = subprocess.run([sys.executable, "-c", IGNORES_CHILDREN, str(place)], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "1", "False"], done.stderr


def test_ctrl_c_ends_the_wait_for_a_server_that_does_not_answer() -> None:
    done = subprocess.run([sys.executable, "-c", IS_INTERRUPTED], capture_output=True, text=True, timeout=180)
    assert done.stdout.split() == ["interrupted", "True"], done.stderr


def test_a_thread_that_an_import_leaves_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "torch.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(shadow), prepend=os.pathsep)
    with ForkServer(MODEL) as server:
        worker = started(tmp_path, server)
        worker.go_on()
        assert worker.wait() == 1
        worker.end()


def test_a_worker_that_is_ended_before_its_turn_is_started_again(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(SECOND_WAITS)
    process = start_hwprof(
        *("collect", "--model", "small:model", "--input-shape", "1,3", "--iterations", "3", "--warmup", "1"),
        *("--no-instrumented", "--output", str(tmp_path / "results")),
        cwd=tmp_path,
    )
    builders = tmp_path / "builders"
    while process.poll() is None and not (builders.exists() and len(list(builders.iterdir())) == 2):
        time.sleep(0.01)
    _, second = sorted(builders.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    assert process.poll() is None
    os.kill(int(second.name), signal.SIGKILL)
    (tmp_path / "killed").touch()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert len(list(builders.iterdir())) == 3
    run = RunDirectory.latest(tmp_path / "results")
    assert [record.status for record in run.manifest.passes] == ["completed", "completed"]
