"""Python's threads that begin while layers are counted: no counter is open on them before the next iteration, so what
they do is in no count of the layers that they work for."""

from __future__ import annotations

import threading
import time
from _thread import get_native_id
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hwprof.thread_clock import thread_cpu_time_ns

BODY: Final = "_bootstrap_inner"
"""The method of ``Thread`` that calls ``run``, in the new thread; what a class of the user's has in its place of that
does not matter."""

_Thread: Any = threading.Thread  # Any: a method of it is replaced for a while


class BegunThread(NamedTuple):
    """When it was there (CLOCK_MONOTONIC, in an iteration), and its CPU time until then."""

    begin_ns: int
    end_ns: int
    cpu_ns: int


class BegunThreads:
    """Those of one iteration after the other."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock, self._cpu_time_ns = clock, time.thread_time_ns  # before the model's code may replace them
        self._ended: list[BegunThread] = []
        self._alive: dict[int, int] = {}  # by the kernel's number: since when
        self._body: Any = None

    def watch(self) -> None:
        """From now on, until ``stop``."""
        body = getattr(_Thread, BODY, None)
        if body is None or self._body is not None:  # another Python: such threads are not told
            return
        self._body = body

        def watched(thread: threading.Thread) -> None:
            number = get_native_id()
            self._alive[number] = self._clock()
            try:
                body(thread)
            finally:
                begin_ns = self._alive.pop(number, None)
                if begin_ns is not None:  # else it was counted before it ended
                    self._ended.append(BegunThread(begin_ns, self._clock(), self._cpu_time_ns()))

        setattr(_Thread, BODY, watched)

    def stop(self) -> None:
        """``Thread`` is as it was."""
        if self._body is not None:
            setattr(_Thread, BODY, self._body)
            self._body = None

    def forget(self) -> None:
        """An iteration begins: threads that are there now are counted."""
        self._ended.clear()
        self._alive.clear()

    def taken(self) -> list[BegunThread]:
        """Of the iteration that ends."""
        found = list(self._ended)
        for number, begin_ns in list(self._alive.items()):
            try:
                found.append(BegunThread(begin_ns, self._clock(), thread_cpu_time_ns(number)))
            except OSError:  # it has ended, and is about to say so
                continue
        return found
