"""What the supervisor says to a worker: that its turn has come, and that the user does not want to wait any longer."""

from __future__ import annotations

import os
from contextlib import suppress

from hwprof.session.messages import ENOUGH
from hwprof.session.reporter import NobodyListensError


class Turn:
    """The descriptor that has a byte when it is this worker's turn."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self.is_enough = False
        """For the user, as far as it was asked for, or a signal said."""

    def wait(self) -> None:
        """Raises ``NobodyListensError`` when nobody is left who could say so."""
        if not os.read(self._descriptor, 1):
            raise NobodyListensError
        os.set_blocking(self._descriptor, False)

    def is_told_to_stop(self) -> bool:
        """By a signal, or by another byte: the model's code may heed the signal in its own way, or swallow what it
        raises."""
        if not self.is_enough:
            with suppress(OSError):  # there is none, or that code has closed everything
                self.is_enough = ENOUGH in os.read(self._descriptor, 8)
        return self.is_enough
