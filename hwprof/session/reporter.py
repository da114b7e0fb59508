"""A worker's words to its supervisor."""

from __future__ import annotations

import os

from hwprof.session import messages
from hwprof.session.messages import Message


class NobodyListensError(BrokenPipeError):
    """The supervisor is gone. A type of its own: the model's code may know other broken pipes."""


class Reporter:
    """Tells the supervisor; if it is gone, the worker ends at the next word. Processes that the worker's code starts
    have no part in it: they would hold the pipe open, and speak in the worker's name."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        os.set_inheritable(descriptor, False)
        os.register_at_fork(after_in_child=self._leave)

    def _leave(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def send(self, message: Message) -> None:
        """One message; raises ``NobodyListensError``."""
        if self._descriptor is None:
            return
        data = messages.encode(message)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError as error:
            raise NobodyListensError from error
