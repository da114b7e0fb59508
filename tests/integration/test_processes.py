"""A process that ends with its parent: what the kernel does, tried with processes that sleep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

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
