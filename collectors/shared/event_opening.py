"""How events are opened as groups of counters, and what this user may count at all."""

from __future__ import annotations

import errno
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hwprof.collector.contract import Tool
from hwprof.hardware import perf_event
from hwprof.hardware.countable import Countable

KERNEL: Final = Tool(name="perf_event_open", version=platform.release())
"""What counts and samples: the kernel."""


@dataclass(frozen=True)
class Opening:
    """Which part of the execution is counted: wherever it is allowed, or as the user asked."""

    kernel: bool  # hardware events count kernel code as well
    kernel_allowed: bool

    def open(self, events: Sequence[Countable], tid: int = 0) -> list[int]:
        """The events as a group on a thread (0: the caller), switched off; the first descriptor is the leader's.

        Raises ``OSError`` as ``perf_event.open_event`` does; then nothing stays open.
        """
        attributes = [self.attributes(event, leader=number == 0) for number, event in enumerate(events)]
        return perf_event.open_group(attributes, tid)

    def attributes(self, event: Countable, *, leader: bool) -> perf_event.Attributes:
        """How the kernel is asked for the event. Software events leave the kernel out only where they must; a modifier
        (``:u``, ``:k``) overrides the option."""
        kernel = self.kernel if event.kind == "hardware" and not event.exclude_user else self.kernel_allowed
        return perf_event.Attributes(
            event.code.type,
            event.code.config,
            event.code.config1,
            event.code.config2,
            exclude_user=event.exclude_user,
            exclude_kernel=event.exclude_kernel or not kernel,
            disabled=leader,
        )


class NotAllowedError(OSError):
    """Not even a software event on one's own thread can be opened."""


def find_opening(*, kernel: bool | None = None) -> Opening:
    """What this process may count. ``kernel``: whether hardware events shall count kernel code; None: wherever it is
    allowed. Raises ``NotAllowedError`` where it may count nothing."""
    allowed = _kernel_allowed()
    return Opening(allowed if kernel is None else kernel and allowed, allowed)


def _kernel_allowed() -> bool:
    try:
        os.close(perf_event.open_event(perf_event.Attributes(perf_event.TYPE_SOFTWARE, perf_event.CONFIG_TASK_CLOCK)))
        return True
    except OSError as error:
        if error.errno != errno.EACCES:
            raise NotAllowedError(error.errno, error.strerror) from error
    user = perf_event.Attributes(perf_event.TYPE_SOFTWARE, perf_event.CONFIG_TASK_CLOCK, exclude_kernel=True)
    try:
        os.close(perf_event.open_event(user))
        return False
    except OSError as error:
        raise NotAllowedError(error.errno, error.strerror) from error
