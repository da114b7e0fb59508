"""The kernel's counting interface, perf_event_open(2), bound through ctypes: open, switch on and off, read.

Counters are never reset (RESET leaves time_enabled and time_running as they are): callers keep differences.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

from hwprof.hardware import perf_event_attr
from hwprof.hardware.perf_event_attr import Flag

SYSCALL_NUMBERS: Final = {
    "x86_64": 298,
    "aarch64": 241,
    "riscv64": 241,
    "loongarch64": 241,
    "ppc64le": 319,
    "armv7l": 364,
    "i686": 336,
}

TYPE_HARDWARE: Final = 0
TYPE_HARDWARE_CACHE: Final = 3
TYPE_SOFTWARE: Final = 1
TYPE_TRACEPOINT: Final = 2
CONFIG_CYCLES: Final = 0
CONFIG_TASK_CLOCK: Final = 1

EVERY_PROCESS: Final = -1
"""As ``tid``: not a thread, but a processor."""

FORMAT_TOTAL_TIME_ENABLED: Final = 1 << 0
FORMAT_TOTAL_TIME_RUNNING: Final = 1 << 1
FORMAT_GROUP: Final = 1 << 3

_IOC_ENABLE: Final = 0x2400
_IOC_DISABLE: Final = 0x2401
_FLAG_FD_CLOEXEC: Final = 8

GROUP_FORMAT: Final = FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING | FORMAT_GROUP
GROUP_HEADER_WORDS: Final = 3
"""A group's ``read`` gives 64-bit words: how many events, time enabled, time running (ns), then one value an event."""


class Packable(Protocol):
    """Anything that is a ``struct perf_event_attr``: for counting (below), or for sampling (``perf_sampling``)."""

    def pack(self) -> bytes:
        """The structure's bytes in native order."""
        ...


@dataclass(frozen=True)
class Attributes:
    """What to count: the part of ``struct perf_event_attr`` that counting needs."""

    type: int
    config: int
    config1: int = 0
    config2: int = 0
    exclude_user: bool = False
    exclude_kernel: bool = False
    disabled: bool = True
    read_format: int = GROUP_FORMAT

    def pack(self) -> bytes:
        """The structure's bytes in native order."""
        flags = Flag.DISABLED if self.disabled else Flag(0)
        if self.exclude_user:
            flags |= Flag.EXCLUDE_USER
        if self.exclude_kernel:
            flags |= Flag.EXCLUDE_KERNEL | Flag.EXCLUDE_HV
        return perf_event_attr.pack(
            self.type,
            self.config,
            flags=flags,
            read_format=self.read_format,
            config1=self.config1,
            config2=self.config2,
        )


@lru_cache(maxsize=1)
def _syscall() -> tuple[ctypes.CDLL, int]:
    number = SYSCALL_NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"perf_event_open's number is not known for {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.syscall.argtypes = [ctypes.c_long, ctypes.c_char_p, *([ctypes.c_int] * 3), ctypes.c_ulong]
    return libc, number


def open_event(attributes: Packable, tid: int = 0, group_fd: int = -1, cpu: int = -1) -> int:
    """A counter on thread ``tid`` (0: the caller) wherever it runs, or, with ``EVERY_PROCESS``, on processor ``cpu``
    whatever runs there; the file descriptor closes on exec.

    Raises ``OSError`` with the kernel's errno: EACCES and EPERM (not allowed), ENOENT (no such event here), EINVAL (the
    group does not fit), ESRCH (the thread has ended), EMFILE (no descriptors left), ENOSYS.
    """
    libc, number = _syscall()
    fd = int(libc.syscall(number, attributes.pack(), tid, cpu, group_fd, _FLAG_FD_CLOEXEC))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


def open_group(attributes: Sequence[Packable], tid: int = 0, cpu: int = -1) -> list[int]:
    """One descriptor an event, the leader's first, so that the kernel counts all of them or none at a time.

    Raises ``OSError`` as ``open_event`` does; then nothing stays open.
    """
    fds: list[int] = []
    try:
        for event in attributes:
            fds.append(open_event(event, tid, fds[0] if fds else -1, cpu))
    except OSError:
        close_group(fds)
        raise
    return fds


def close_group(fds: Sequence[int]) -> None:
    """Gives a group's descriptors back, members before their leader."""
    for fd in reversed(fds):
        os.close(fd)


def enable_group(leader_fd: int) -> None:
    """Starts a group whose leader was opened disabled and whose members were not.

    That way the kernel puts all of them on at once. Members that are switched on one by one (PERF_IOC_FLAG_GROUP) stay
    uncounted until the next scheduling: on Linux 6.18 the first hundreds of page faults were missing.
    """
    fcntl.ioctl(leader_fd, _IOC_ENABLE, 0)


def disable_group(leader_fd: int) -> None:
    """Stops the group, whose members cannot count without their leader; values and times stay."""
    fcntl.ioctl(leader_fd, _IOC_DISABLE, 0)


def group_read_bytes(events: int) -> int:
    """The size of one read of a group of that many events."""
    return 8 * (GROUP_HEADER_WORDS + events)


def read_group(leader_fd: int, events: int) -> tuple[int, int, tuple[int, ...]]:
    """(time enabled in ns, time running in ns, the values), as the kernel has them now."""
    data = os.read(leader_fd, group_read_bytes(events))
    _, enabled_ns, running_ns, *values = struct.unpack(f"={GROUP_HEADER_WORDS + events}Q", data)
    return enabled_ns, running_ns, tuple(values)


def paranoid_level(root: Path = Path("/")) -> int | None:
    """``kernel.perf_event_paranoid``; None where the kernel has no perf events (or shows no /proc)."""
    try:
        return int((root / "proc/sys/kernel/perf_event_paranoid").read_text())
    except (OSError, ValueError):
        return None


def busy_work() -> int:
    """A few hundred microseconds of arithmetic that any working counter of cycles or instructions must notice."""
    return sum(range(20_000))


def core_pmu_counts() -> bool:
    """Whether a hardware counter (cycles in user mode) can be opened by this process, runs and counts."""
    try:
        fd = open_event(Attributes(TYPE_HARDWARE, CONFIG_CYCLES, exclude_kernel=True))
    except OSError:
        return False
    try:
        enable_group(fd)
        busy_work()
        _, running_ns, (cycles,) = read_group(fd, 1)
    finally:
        os.close(fd)
    return running_ns > 0 and cycles > 0
