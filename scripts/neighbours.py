"""Other programs on the machine, made: plain loops at nice 0, that work and rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LOOP: Final = """
import sys, time
work, rest = float(sys.argv[1]), float(sys.argv[2])
while True:
    end = time.monotonic() + work
    while time.monotonic() < end:
        pass
    time.sleep(rest)
"""


@contextmanager
def loops(number: int, work_s: float = 1.0, rest_s: float = 0.0) -> Iterator[None]:
    """So many, each of which rests so long after it worked. With as many as there are processors that never rest, a
    program's threads get half of the machine."""
    running = [subprocess.Popen([sys.executable, "-c", LOOP, str(work_s), str(rest_s)]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in running:
            loop.kill()
        for loop in running:
            loop.wait()
