"""A process that ends with its parent: what the kernel does, tried with processes that sleep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from hwprof.processes import Known, descendants, kill

CHILD = """
import os, sys, time
from hwprof.processes import end_with_parent
end_with_parent(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(60)
"""
PARENT = "import os, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], str(os.getpid())])"


def test_the_child_is_gone_when_its_parent_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert int(parent.stdout.readline()) != parent.pid
        parent.kill()
        assert parent.stdout.read() == b"", "the pipe ends with the last process that holds it, long before 60 s"


def test_one_that_comes_too_late_ends_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, str(os.getpid() + 1)], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"")


STARTS = """
import os, subprocess, sys, time
from hwprof import processes
processes.keep_orphans()
subprocess.Popen(["sleep", "60"], start_new_session=True)
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(60)
    os._exit(0)
time.sleep(0.5)
print(flush=True)
time.sleep(60)
"""


def test_what_left_its_session_or_lost_its_parent_is_found_and_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        found = descendants(parent.pid)
        assert len(found) >= 2
        parent.kill()
        kill(found)
        assert parent.stdout.read() == b"", "the pipe ends with the last process that holds it"


def test_a_number_that_another_process_has_by_now_is_let_alone() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        kill([Known(other.pid, 1)])
        assert other.poll() is None
        other.kill()


SWALLOWS = """
import os, sys, time, weakref
from hwprof import __main__ as program
from hwprof.cli import app

class Thing:
    pass

def end(_):
    os.kill(os.getpid(), int(sys.argv[1]))
    for _ in range(1000):  # it comes in here, as in any code that Python itself calls
        pass

def run(arguments):
    thing = Thing()
    reference = weakref.ref(thing, end)
    del thing
    time.sleep(60)
    return 0

app.run = run
program.main()
"""


@pytest.mark.parametrize(
    ("number", "told"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM")], ids=str
)
def test_an_interruption_that_python_swallows_comes_once_more(number: signal.Signals, told: str) -> None:
    command = [sys.executable, "-c", SWALLOWS, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (128 + number, f"hwprof: {told}\n")
