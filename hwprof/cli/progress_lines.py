"""Progress where standard error is no terminal: now and then a plain line, so that a log shows that a run goes on."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

EVERY_S: Final = 10.0
"""A run that is shorter than that says nothing, and nothing is said more often."""

AGAIN_S: Final = 60.0
"""How long the same phase goes on until its line comes again."""


@dataclass(frozen=True)
class Phase:
    """What is going on, and how far it has come; ``total`` None: that is not known."""

    pass_name: str
    text: str
    total: int | None
    done: int = 0

    def __str__(self) -> str:
        """``[instrumented] measuring (the pass takes about 40 s): 120 of 800``."""
        reached = f": {self.done} of {self.total}" if self.total and self.done else ""
        return f"[{self.pass_name or 'run'}] {self.text}{reached}"


class ProgressLines:
    """Writes the line of the phase that is under way every ``EVERY_S``, from a thread: a phase may last for minutes
    without a step. Unbuffered and without a lock: this process is copied meanwhile."""

    def __init__(self) -> None:
        self._phase: Phase | None = None
        self._said: tuple[Phase, float] | None = None  # the last one, and when
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._descriptor: int | None = None

    def start(self) -> None:
        """From now on; nothing where standard error is no file."""
        with suppress(AttributeError, OSError, io.UnsupportedOperation):
            self._descriptor = sys.stderr.fileno()
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """No line comes behind this."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def phase(self, pass_name: str, text: str, total: int | None) -> None:
        """Another phase begins."""
        self._phase = Phase(pass_name, text, total)

    def step(self) -> None:
        """One step of the phase is done."""
        if self._phase is not None:
            self._phase = replace(self._phase, done=self._phase.done + 1)

    def reached(self, done: int, total: int) -> None:
        """The phase has come this far."""
        if self._phase is not None:
            self._phase = replace(self._phase, done=done, total=total)

    def tell(self, pass_name: str, text: str) -> None:
        """Writes this line at once."""
        self._write(str(Phase(pass_name, text, None)))

    def due(self, now_s: float) -> str | None:
        """The line to write at this time, if there is something to say."""
        phase = self._phase
        if phase is None:
            return None
        if self._said is not None:
            before, said_s = self._said
            same = (before.pass_name, before.text) == (phase.pass_name, phase.text)
            if same and now_s - said_s < AGAIN_S:
                return None
        self._said = (phase, now_s)
        return str(phase)

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            line = self.due(time.monotonic())
            if line is not None:
                self._write(line)

    def _write(self, line: str) -> None:
        if self._descriptor is not None:
            with suppress(OSError):  # nobody reads it any more
                os.write(self._descriptor, f"{line}\n".encode(errors="replace"))
